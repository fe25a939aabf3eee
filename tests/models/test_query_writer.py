import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx
from tiny_questions import VOCABULARY, tiny_reader, tiny_writer

from triax.models.query_decoding import pad_sources
from triax.models.query_writer import WriterConfig, choice_log_likelihood

SIZE = len(VOCABULARY)
SOURCES = tiny_reader().read(["Who is the mother of Vertigo?", "Stalker?"])
IDS, MASK, COPYABLE, _ = pad_sources(SOURCES, 2, (12,))
OUTPUTS = np.array([[0, 9, SIZE + 6, SIZE + 7, 1], [0, 10, SIZE + 1, SIZE + 2, 1]], np.int32)


@pytest.fixture(scope="module")
def model():
    return tiny_writer(scale=4.0)


@pytest.fixture(scope="module")
def memory(model):
    return model.read(jnp.asarray(IDS), jnp.asarray(MASK), jnp.asarray(COPYABLE))


def test_step_by_step_is_as_all_at_once(model, memory):
    whole = model(memory, jnp.asarray(OUTPUTS))
    cache = model.empty_cache(2, 8)
    step = nnx.jit(lambda model, *rest: model.step(*rest))
    for n in range(OUTPUTS.shape[1]):
        logits, cache = step(model, memory, cache, jnp.asarray(OUTPUTS[:, n]), jnp.int32(n))
        np.testing.assert_allclose(logits, whole[:, n], rtol=1e-4, atol=1e-4)


def test_no_output_sees_later_ones(model, memory):
    changed = OUTPUTS.copy()
    changed[:, 3:] = 4
    before = model(memory, jnp.asarray(OUTPUTS))[:, :3]
    np.testing.assert_allclose(model(memory, jnp.asarray(changed))[:, :3], before, atol=1e-5)


def test_padding_changes_nothing(model, memory):
    ids, mask, copyable, _ = pad_sources(SOURCES[1:], 1, (6,))
    short = model.read(jnp.asarray(ids), jnp.asarray(mask), jnp.asarray(copyable))
    ours = model(short, jnp.asarray(OUTPUTS[1:]))
    theirs = model(memory, jnp.asarray(OUTPUTS))[1:, :, : SIZE + 6]
    np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-4)


def test_only_places_of_the_question_are_copied(model, memory):
    copies = model(memory, jnp.asarray(OUTPUTS))[1, :, SIZE:]
    assert (np.asarray(copies) > -1e8).all(0).tolist() == [False, True, True, True] + [False] * 8


def test_the_place_after_a_copy_has_a_head_start(model, memory):
    """By exactly the bias, and after copies only."""
    before = model(memory, jnp.asarray(OUTPUTS))
    model.follow_bias[...] = model.follow_bias[...] + 2.0
    after = model(memory, jnp.asarray(OUTPUTS))
    model.follow_bias[...] = model.follow_bias[...] - 2.0
    rise = np.array(after - before)
    assert rise[0, 2, SIZE + 7] == pytest.approx(2.0, abs=1e-4)
    assert rise[1, 2, SIZE + 2] == pytest.approx(2.0, abs=1e-4)
    rise[0, 2, SIZE + 7] = rise[0, 3, SIZE + 8] = 0
    rise[1, 2, SIZE + 2] = rise[1, 3, SIZE + 3] = 0
    assert np.abs(rise[:, :, SIZE:]).max() < 1e-4


def test_the_likelihood_sums_all_ways():
    """By hand: p = .1 .2 .3 (tokens) .1 .3 (places)."""
    p = np.array([0.1, 0.2, 0.3, 0.1, 0.3], np.float32)
    logits = jnp.asarray(np.log(p))[None, None].repeat(3, axis=1)
    tokens = jnp.asarray([[1, -1, 2]], jnp.int32)
    places = jnp.asarray([[[True, False], [True, True], [False, False]]])
    found = np.exp(choice_log_likelihood(logits, tokens, places))
    np.testing.assert_allclose(found, [[0.3, 0.4, 0.3]], rtol=1e-5)


def test_the_likelihood_has_a_gradient_where_there_is_no_way():
    def loss(logits):
        nothing = jnp.full((1, 1), -1, jnp.int32), jnp.zeros((1, 1, 2), bool)
        return jnp.where(False, choice_log_likelihood(logits, *nothing), 0.0).sum()

    assert np.isfinite(jax.grad(loss)(jnp.zeros((1, 1, 5)))).all()


def test_a_width_that_the_heads_cannot_share():
    with pytest.raises(ValueError, match="width 10 is not a multiple of the 4"):
        WriterConfig(9, width=10)
