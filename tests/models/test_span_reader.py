import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from triax.models.encoder import EncoderConfig, TransformerEncoder
from triax.models.span_reader import SpanReader, best_spans, marginal_loss

CONFIG = EncoderConfig("bert", 20, 16, 1, 2, 24, 16)


@pytest.fixture(scope="module")
def scores():
    model = SpanReader(TransformerEncoder(CONFIG, rngs=nnx.Rngs(0)), rngs=nnx.Rngs(1))
    #       [CLS] q  q [SEP] a  b  c [SEP] pad
    ids = jnp.array([[2, 5, 6, 3, 7, 8, 9, 3, 0]])
    types = jnp.array([[0, 0, 0, 0, 1, 1, 1, 1, 0]])
    return model(ids, ids > 0, types)


def test_only_the_passage_and_the_three_verdicts_can_be_chosen(scores):
    possible = np.flatnonzero(np.asarray(scores.start)[0] > -1e30)
    assert possible.tolist() == [0, 4, 5, 6, 9, 10]
    assert np.asarray(scores.end).shape == (1, 11)


def test_the_loss_is_the_marginal_of_torch():
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(0)
    values = rng.standard_normal((3, 6)).astype(np.float32)
    gold = np.array([[1, 0, 0, 0, 0, 0], [0, 1, 0, 1, 0, 0], [0, 0, 0, 0, 0, 1]], bool)
    ours = marginal_loss(jnp.asarray(values), jnp.asarray(gold))
    p = torch.softmax(torch.tensor(values), dim=1)
    theirs = -torch.log((p * torch.tensor(gold)).sum(1))
    assert np.abs(np.asarray(ours) - theirs.numpy()).max() < 1e-6


def test_the_best_span_is_that_of_a_search_over_all_pairs():
    rng = np.random.default_rng(1)
    length = 12
    for _ in range(20):
        start, end = rng.standard_normal((2, length + 2)).astype(np.float32)
        pairs = {
            (i, j): start[i] + end[j]
            for i in range(1, length)
            for j in range(i, min(i + 4, length))
        }
        pairs |= {(place, place): start[place] + end[place] for place in (length, length + 1)}
        best = best_spans(start, end, max_tokens=4, count=8)[0]
        assert (best.start, best.end) == max(pairs, key=pairs.get)
        assert best.margin == pytest.approx(max(pairs.values()) - start[0] - end[0], abs=1e-5)


def test_forbidden_places_are_never_chosen():
    low = np.finfo(np.float32).min
    start = np.array([0.0, low, low, 1.0, 0.5, -3.0, -3.0], np.float32)
    end = np.array([0.0, low, low, 0.0, 2.0, -3.0, -3.0], np.float32)
    found = best_spans(start, end)
    assert (found[0].start, found[0].end, found[0].margin) == (3, 4, 3.0)
    assert all(one.start >= 3 for one in found)
