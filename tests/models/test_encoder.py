import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from triax.models.encoder import (
    EncoderConfig,
    TransformerEncoder,
    dropout,
    pool,
    relative_buckets,
    unit_rows,
)
from triax.models.encoder_params import load_encoder

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

BERT = {
    "model_type": "bert",
    "vocab_size": 61,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 48,
    "max_position_embeddings": 40,
}


def oracle(kind: str, positions: int):
    """A torch model whose every parameter, biases and norms among them, is off its default."""
    torch.manual_seed(0)
    shape = {**BERT, "max_position_embeddings": positions}
    shape.pop("model_type")
    config = getattr(transformers, f"{kind}Config")(pad_token_id=1, **shape)
    model = getattr(transformers, f"{kind}Model")(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    return model


def padded_rows(length: int):
    rng = np.random.default_rng(0)
    ids = rng.integers(5, BERT["vocab_size"], (3, length))
    mask = np.arange(length) < np.array([length, length // 2, 3])[:, None]
    return np.where(mask, ids, 1).astype(np.int32), mask


@pytest.mark.parametrize(
    ("kind", "length"), [("Bert", 24), ("Roberta", 24), ("MPNet", 24), ("MPNet", 300)]
)
def test_hidden_states_equal_torch(tmp_path, kind, length):
    model = oracle(kind, length + 2)
    model.save_pretrained(tmp_path)
    encoder, _ = load_encoder(tmp_path)
    ids, mask = padded_rows(length)
    with torch.no_grad():
        expected = model(torch.tensor(ids), attention_mask=torch.tensor(mask).long())
    got = encoder(jnp.asarray(ids), jnp.asarray(mask))
    np.testing.assert_allclose(
        np.asarray(got)[mask], expected.last_hidden_state.numpy()[mask], atol=1e-4, rtol=0
    )


def test_token_types_and_gradients_equal_torch(tmp_path):
    model = oracle("Bert", 40)
    model.save_pretrained(tmp_path)
    encoder, _ = load_encoder(tmp_path)
    ids, mask = padded_rows(24)
    types = (np.arange(24) % 2)[None].repeat(3, 0).astype(np.int32)
    hidden = model(
        torch.tensor(ids),
        attention_mask=torch.tensor(mask).long(),
        token_type_ids=torch.tensor(types).long(),
    ).last_hidden_state
    loss = (hidden[:, 0] ** 3).mean()
    loss.backward()
    graph, state = nnx.split(encoder)

    def ours(state):
        hidden = nnx.merge(graph, state)(jnp.asarray(ids), jnp.asarray(mask), jnp.asarray(types))
        return (hidden[:, 0] ** 3).mean()

    value, slope = jax.jit(jax.value_and_grad(ours))(state)
    np.testing.assert_allclose(float(value), loss.item(), rtol=1e-4)
    np.testing.assert_allclose(
        slope["layers"][0]["query"]["kernel"].get_value(),
        model.encoder.layer[0].attention.self.query.weight.grad.numpy().T,
        atol=1e-4,
    )
    np.testing.assert_allclose(
        slope["tokens"]["embedding"].get_value(),
        model.embeddings.word_embeddings.weight.grad.numpy(),
        atol=1e-4,
    )


@pytest.mark.parametrize("length", [1, 2, 9, 300, 512])
def test_relative_buckets_equal_torch(length):
    from transformers.models.mpnet.modeling_mpnet import MPNetEncoder

    distance = torch.arange(-(length - 1), length)
    expected = MPNetEncoder.relative_position_bucket(distance, num_buckets=32)
    np.testing.assert_array_equal(relative_buckets(length, 32), expected.numpy())


@pytest.fixture(scope="module")
def tiny():
    config = EncoderConfig.from_hf(BERT)
    return nnx.jit(lambda: TransformerEncoder(config, rngs=nnx.Rngs(0)))()


def test_padding_has_no_influence(tiny):
    ids, mask = padded_rows(24)
    other = np.where(mask, ids, 7)
    one = tiny(jnp.asarray(ids), jnp.asarray(mask))
    two = tiny(jnp.asarray(other), jnp.asarray(mask))
    np.testing.assert_allclose(np.asarray(one)[mask], np.asarray(two)[mask], atol=1e-6)


def test_a_row_without_tokens_is_finite(tiny):
    ids = jnp.zeros((2, 24), jnp.int32)
    assert np.isfinite(np.asarray(tiny(ids, jnp.zeros((2, 24), bool)))).all()


def test_dropout_needs_a_key_and_repeats_with_it(tiny):
    ids, mask = map(jnp.asarray, padded_rows(24))
    key = jax.random.key(3)
    plain, again = tiny(ids, mask), tiny(ids, mask)
    np.testing.assert_array_equal(plain, again)
    dropped = tiny(ids, mask, dropout_key=key)
    assert np.abs(np.asarray(dropped - plain)).max() > 1e-2
    np.testing.assert_array_equal(dropped, tiny(ids, mask, dropout_key=key))


def test_dropout_keeps_the_mean():
    x = jnp.ones((100, 100))
    dropped = np.asarray(dropout(x, 0.25, jax.random.key(0)))
    np.testing.assert_allclose(np.unique(dropped), [0, 4 / 3], rtol=1e-6)
    # 10,000 entries of variance 1/3: five standard errors are 0.029.
    assert abs(dropped.mean() - 1) < 0.029
    assert dropout(x, 0.25, None) is x


def test_bfloat16_computes_in_bfloat16_with_float32_weights(tiny):
    config = tiny.config
    half = nnx.jit(lambda: TransformerEncoder(config, jnp.bfloat16, rngs=nnx.Rngs(0)))()
    ids, mask = padded_rows(24)
    out = half(jnp.asarray(ids), jnp.asarray(mask))
    assert out.dtype == jnp.bfloat16
    assert {leaf.dtype for leaf in jax.tree.leaves(nnx.state(half))} == {jnp.dtype("float32")}
    full = tiny(jnp.asarray(ids), jnp.asarray(mask))
    # Unit-variance outputs; bfloat16 keeps 8 bits.
    np.testing.assert_allclose(np.asarray(out, np.float32)[mask], np.asarray(full)[mask], atol=0.06)


def test_rows_longer_than_the_positions_are_refused(tiny):
    with pytest.raises(ValueError, match="rows of 41 tokens, .* 40"):
        tiny(jnp.zeros((1, 41), jnp.int32), jnp.ones((1, 41), bool))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"model_type": "t5"}, "model_type 't5'"),
        ({"hidden_act": "relu"}, "hidden_act is 'relu'"),
        ({"position_embedding_type": "relative_key"}, "position_embedding_type"),
        ({"is_decoder": True}, "decoder"),
        ({"num_attention_heads": 5}, "not a multiple"),
    ],
)
def test_configurations_of_other_models_are_refused(change, message):
    with pytest.raises(ValueError, match=message):
        EncoderConfig.from_hf({**BERT, **change})


def test_max_length_leaves_out_the_positions_of_padding():
    assert EncoderConfig.from_hf(BERT).max_length == 40
    roberta = {**BERT, "model_type": "xlm-roberta", "max_position_embeddings": 514}
    assert EncoderConfig.from_hf({**roberta, "pad_token_id": 1}).max_length == 512


def test_pool_by_hand():
    hidden = jnp.array([[[1.0, 2.0], [3.0, 6.0], [100.0, 100.0]]])
    mask = jnp.array([[True, True, False]])
    np.testing.assert_allclose(pool(hidden, mask, "mean"), [[2.0, 4.0]])
    np.testing.assert_allclose(pool(hidden, mask, "cls"), [[1.0, 2.0]])
    np.testing.assert_array_equal(pool(hidden, jnp.zeros((1, 3), bool), "mean"), [[0.0, 0.0]])


def test_unit_rows_by_hand_and_at_zero():
    np.testing.assert_allclose(unit_rows(jnp.array([[3.0, 4.0]])), [[0.6, 0.8]], rtol=1e-6)
    slope = jax.grad(lambda x: unit_rows(x).sum())(jnp.zeros((1, 2)))
    assert np.isfinite(np.asarray(slope)).all()
