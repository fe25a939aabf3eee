import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from triax.models.encoder import EncoderConfig, TransformerEncoder
from triax.models.span_reader import MAX_SPAN, NOT_HERE, SpanReader, marginal_loss

CONFIG = EncoderConfig("bert", 20, 16, 1, 2, 24, 16)


@pytest.fixture(scope="module")
def reader():
    return SpanReader(TransformerEncoder(CONFIG, rngs=nnx.Rngs(0)), rngs=nnx.Rngs(1))


@pytest.fixture(scope="module")
def row():
    #       [CLS] q  q [SEP] a  b  c [SEP] pad
    ids = jnp.array([[2, 5, 6, 3, 7, 8, 9, 3, 0]])
    types = jnp.array([[0, 0, 0, 0, 1, 1, 1, 1, 0]])
    return ids, ids > 0, types


def test_only_spans_of_the_passage_can_be_chosen(reader, row):
    spans = np.asarray(reader(*row).spans)[0]
    assert spans.shape == (9, MAX_SPAN)
    possible = [(first, first + size) for first, size in np.argwhere(spans > -1e30).tolist()]
    assert possible == [(4, 4), (4, 5), (4, 6), (5, 5), (5, 6), (6, 6)]


def test_a_span_is_scored_by_its_two_ends_together(reader, row):
    ids, mask, types = row
    reader.length_bias[...] = jnp.arange(MAX_SPAN, dtype=jnp.float32)
    hidden = np.asarray(reader.encoder(ids, mask, types))[0]

    def head(name, place):
        one = getattr(reader, name)
        return hidden[place] @ np.asarray(one.kernel[...]) + np.asarray(one.bias[...])

    spans = np.asarray(reader(ids, mask, types).spans)[0]
    for first, last in ((4, 4), (4, 6), (5, 6)):
        wanted = head("ends_head", first)[0] + head("ends_head", last)[1]
        wanted += head("first_head", first) @ head("last_head", last) / 8  # the root of 64
        assert spans[first, last - first] == pytest.approx(wanted + last - first, abs=1e-5)
    reader.length_bias[...] = jnp.zeros(MAX_SPAN)


def test_verdicts_come_before_the_spans(reader, row):
    scores = reader(*row)
    assert scores.flat.shape == (1, 3 + 9 * MAX_SPAN)
    assert scores.flat[0, NOT_HERE] == scores.verdicts[0, NOT_HERE]
    assert scores.flat[0, 3 + 4 * MAX_SPAN + 2] == scores.spans[0, 4, 2]


def test_the_loss_is_the_marginal_of_torch():
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(0)
    values = rng.standard_normal((3, 6)).astype(np.float32)
    gold = np.array([[1, 0, 0, 0, 0, 0], [0, 1, 0, 1, 0, 0], [0, 0, 0, 0, 0, 1]], bool)
    ours = marginal_loss(jnp.asarray(values), jnp.asarray(gold))
    p = torch.softmax(torch.tensor(values), dim=1)
    theirs = -torch.log((p * torch.tensor(gold)).sum(1))
    assert np.abs(np.asarray(ours) - theirs.numpy()).max() < 1e-6
