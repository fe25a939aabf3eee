import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from triax.models.encoder import EncoderConfig, TransformerEncoder
from triax.models.triplet_tagger import Layout, TaggerConfig, TripletTagger, best_copies

LENGTH, WIDEST = 12, 4
CONFIG = TaggerConfig(
    num_prefixes=3,
    num_suffixes=2,
    num_relations=5,
    width=16,
    span_width=8,
    pair_width=8,
    max_span=WIDEST,
    num_subjects=3,
    num_objects=4,
    num_mentions=3,
    num_pairs=6,
)


@pytest.fixture(scope="module")
def tagger():
    shape = EncoderConfig("bert", 20, 16, 1, 2, 16, 16)
    rngs = nnx.Rngs(0)
    return TripletTagger(TransformerEncoder(shape, rngs=rngs), CONFIG, rngs=rngs)


@pytest.fixture(scope="module")
def layout():
    """[CLS] a b [SEP] c d e f ##f g h [SEP]: the title is a b, the word f has two tokens."""
    begins = np.zeros((1, LENGTH), bool)
    ends = np.zeros((1, LENGTH), bool)
    begins[0, [1, 2, 4, 5, 6, 7, 9, 10]] = True
    ends[0, [1, 2, 4, 5, 6, 8, 9, 10]] = True
    return Layout(jnp.array(begins), jnp.array(ends), jnp.array([3]))


@pytest.fixture(scope="module")
def hidden():
    return jax.random.normal(jax.random.key(1), (1, LENGTH, 16))


def test_spans_are_scored_by_both_ends(tagger, layout, hidden):
    """Global Pointer's form, written out in numpy; other spans cannot be chosen."""
    head = tagger.head
    scores = np.asarray(head.spans(hidden, layout))[0]
    first, last, before, behind = (
        np.asarray(layer(hidden))[0]
        for layer in (head.first, head.last, head.first_bias, head.last_bias)
    )
    width = np.asarray(head.width_bias.embedding[...])
    allowed = [(1, 1), (1, 2), (2, 2), (4, 6), (5, 8), (7, 8), (9, 10), (10, 10)]
    for i, j in allowed:
        for role in range(3):
            part = slice(8 * role, 8 * role + 8)
            expected = first[i, part] @ last[j, part] / np.sqrt(8)
            expected += before[i, role] + behind[j, role] + width[j - i, role]
            assert scores[i, j - i, role] == pytest.approx(expected, abs=1e-4)
    # A special token, across the title's end, half a word, beyond the last token.
    for i, j in [(0, 0), (2, 4), (7, 7), (8, 8), (6, 7), (10, 11), (11, 11)]:
        assert scores[i, j - i, 0] < -1e8


def test_all_whole_word_spans_can_be_chosen(tagger, layout, hidden):
    scores = np.asarray(tagger.head.spans(hidden, layout))[0, :, :, 0]
    found = {(i, i + w) for i, w in np.argwhere(scores > -1e8).tolist()}
    begins, ends = np.flatnonzero(layout.begins[0]), np.flatnonzero(layout.ends[0])
    expected = {
        (i, j) for i in begins for j in ends if 0 <= j - i < WIDEST and (i < 3) == (j < 3) and i > 0
    }
    assert found == expected


def test_candidates_are_the_best_spans(tagger):
    scores = jnp.zeros((1, LENGTH, WIDEST)).at[0, 5, 2].set(3.0).at[0, 1, 1].set(2.0)
    flat, values = tagger.head.candidates(scores, 2)
    first, last = tagger.head.places(flat)
    assert first.tolist() == [[5, 1]] and last.tolist() == [[7, 2]]
    assert values.tolist() == [[3.0, 2.0]]


def test_a_copy_is_a_span_of_whole_words(layout):
    first = np.full((1, 3, LENGTH), -1.0, np.float32)
    last = np.full((1, 3, LENGTH), -1.0, np.float32)
    first[0, 0, 8], first[0, 0, 5] = 9.0, 3.0  # token 8 begins no word
    last[0, 0, 7], last[0, 0, 8], last[0, 0, 2] = 9.0, 3.0, 5.0  # 7 ends none, 2 is before
    first[0, 1, 0] = 5.0  # nothing is copied
    last[0, 1, 6] = 5.0
    first[0, 2, 4], last[0, 2, 10], last[0, 2, 6] = 5.0, 5.0, 1.0  # 10 is too far
    found = best_copies(jnp.array(first), jnp.array(last), layout, WIDEST)
    assert found.tolist() == [[[5, 8], [0, 0], [4, 6]]]


@pytest.fixture(scope="module")
def look(tagger):
    """Compiled once a shape: operation by operation it takes many times as long."""
    graph, state = nnx.split(tagger)
    return jax.jit(lambda *given: nnx.merge(graph, state)(*given))


def test_what_is_seen_of_a_row(look, layout):
    seen = look(jnp.arange(LENGTH)[None], jnp.ones((1, LENGTH), bool), layout)
    assert seen.subject.shape == (1, 6, 2) and seen.copied.shape == (1, 6, 2)
    assert seen.relation_scores.shape == (1, 3, 3, 5)
    scores = np.asarray(seen.pair_scores)[0]
    assert (np.diff(scores) <= 0).all()
    assert not (np.asarray(seen.subject) == np.asarray(seen.object)).all(-1).any()
    assert (np.asarray(seen.relation_scores)[0, range(3), range(3)] < -1e8).all()
    # Something is said of every pair: a prefix, a copy, or both.
    assert ((np.asarray(seen.prefix) > 0) | (np.asarray(seen.copied)[..., 0] > 0)).all()


def test_padding_changes_nothing(look, layout):
    ids = jnp.arange(LENGTH)[None]
    mask = jnp.ones((1, LENGTH), bool)
    alone = look(ids, mask, layout)
    wider = [jnp.pad(x, ((0, 0), (0, 3))) for x in (ids, mask, layout.begins, layout.ends)]
    padded = look(wider[0], wider[1], Layout(wider[2], wider[3], layout.title_end))
    for one, other in zip(alone, padded):
        np.testing.assert_allclose(np.asarray(one), np.asarray(other), atol=1e-4)
