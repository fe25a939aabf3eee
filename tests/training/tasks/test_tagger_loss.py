import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from flax import nnx

from triax.models.encoder import EncoderConfig, TransformerEncoder
from triax.models.passage_tokens import PassageTokens
from triax.models.tagged_triplets import Phrases, Thresholds, WindowTags, read_triplets
from triax.models.trained_tagger import pad_windows
from triax.models.triplet_tagger import Layout, TaggerConfig, TripletTagger
from triax.training.lessons.tagged_windows import TaggedWindow, make_batch
from triax.training.tasks.tagger_loss import span_loss, tagger_loss

CONFIG = TaggerConfig(
    num_prefixes=3,
    num_suffixes=2,
    num_relations=2,
    width=32,
    span_width=8,
    pair_width=16,
    max_span=4,
    num_subjects=4,
    num_objects=6,
    num_mentions=4,
    num_pairs=6,
)
TITLE, TEXT = "Marie Curie", "She was born in Warsaw and known for work on radium"


def flat(first, last):
    return first * CONFIG.max_span + last - first


def window(**changed):
    """[CLS] Marie Curie [SEP] She was born in Warsaw and known for work on radium [SEP]."""
    spans, begin = [(0, 0)], 0
    for part in (TITLE, TEXT):
        for word in part.split():
            start = f"{TITLE}\n{TEXT}".index(word, begin)
            begin = start + len(word)
            spans.append((start, begin))
        spans.append((0, 0))
    places = np.array(spans, np.int32)
    is_word = places[:, 1] > 0
    tokens = PassageTokens(np.arange(1, 17, dtype=np.int32), places, is_word, is_word, 3)
    curie, warsaw, radium = flat(1, 2), flat(8, 8), flat(12, 14)
    told = {
        "pairs": ((curie, warsaw, 5, 7, 0, 0), (curie, radium, 10, 11, 1, 0)),
        "relations": ((curie, warsaw, 1),),
        "mentions": (curie, warsaw),
        "aliases": (flat(4, 4),),
        "is_open": True,
        "is_exhaustive": True,
    }
    return TaggedWindow(tokens, **(told | changed))


@pytest.fixture(scope="module")
def tagger():
    shape = EncoderConfig("bert", 20, 32, 1, 2, 32, 24)
    rngs = nnx.Rngs(0)
    return TripletTagger(TransformerEncoder(shape, rngs=rngs), CONFIG, rngs=rngs)


def arrays(windows, rows=2):
    return {k: jnp.asarray(v) for k, v in make_batch(windows, rows, 16, CONFIG, 4, 4).items()}


def test_span_loss_by_hand():
    """Right 2, wrong 1 and -1, one more that does not count: log(1+e+1/e) + log(1+e^-2)."""
    scores = jnp.array([2.0, 1.0, -1.0, 9.0])
    right = jnp.array([True, False, False, False])
    wrong = jnp.array([False, True, True, False])
    expected = np.log(1 + np.e + 1 / np.e) + np.log(1 + np.e**-2)
    assert float(span_loss(scores, right, wrong)) == pytest.approx(expected, rel=1e-6)


@pytest.fixture(scope="module")
def losses(tagger):
    graph, state = nnx.split(tagger)
    jitted = jax.jit(lambda batch: tagger_loss(nnx.merge(graph, state), batch))
    return lambda *windows: jitted(arrays(windows))


def test_rows_are_added_and_empty_rows_weigh_nothing(losses):
    one, two = losses(window()), losses(window(), window())
    assert (float(one.weight), float(two.weight)) == (1.0, 2.0)
    assert float(two.total) == pytest.approx(2 * float(one.total), rel=1e-4)
    assert sum(map(float, one.metrics.values())) == pytest.approx(float(one.total), rel=1e-5)


def test_what_is_not_told_is_not_learnt(losses):
    open_only = losses(window(is_exhaustive=False, mentions=(), relations=()))
    assert float(open_only.metrics["relations"]) == 0.0
    assert float(open_only.metrics["pairs"]) > 0.0
    related_only = losses(window(is_open=False, pairs=(), aliases=()))
    assert float(related_only.metrics["pairs"]) == 0.0
    assert float(related_only.metrics["predicates"]) == 0.0
    one_relation = losses(window(is_open=False, is_exhaustive=False, pairs=()))
    assert float(one_relation.metrics["spans"]) == 0.0
    assert float(one_relation.metrics["relations"]) > 0.0
    no_predicate = [(*pair[:2], -1, -1, -1, -1) for pair in window().pairs]
    assert float(losses(window(pairs=tuple(no_predicate))).metrics["predicates"]) == 0.0


def test_a_tagger_learns_to_read_its_lesson_back(tagger):
    graph, state = nnx.split(tagger)
    optimizer = optax.adam(1e-2)
    batch = arrays([window()], rows=1)

    @jax.jit
    def fit(state):
        def step(held, _):
            state, moments = held
            loss = lambda state: tagger_loss(nnx.merge(graph, state), batch).total  # noqa: E731
            updates, moments = optimizer.update(jax.grad(loss)(state), moments)
            return (optax.apply_updates(state, updates), moments), None

        return jax.lax.scan(step, (state, optimizer.init(state)), length=120)[0][0]

    trained = nnx.merge(graph, fit(state))
    tokens = window().tokens
    ids, mask, begins, ends, title_end = map(jnp.asarray, pad_windows([tokens], 1, 16))
    seen = jax.jit(lambda: trained(ids, mask, Layout(begins, ends, title_end)))()
    tags = WindowTags(*(np.asarray(array)[0] for array in seen))
    phrases = Phrases(("", "is", "has"), ("", "of"), ("sibling", "place of birth"))
    found = read_triplets(TITLE, TEXT, [(tokens, tags)], phrases, Thresholds(0.5, 0.5, 0.5))
    assert {triplet.fields for triplet in found} == {
        ("Marie Curie", "was born in", "Warsaw"),
        ("Marie Curie", "is known for", "work on radium"),
        ("Marie Curie", "place of birth", "Warsaw"),
    }
