import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx
from tiny_deberta import SHAPE, padded_rows, perturb, torch_config

from triax.models.adapters import ENCODER_LAYERS, add_lora, merge_lora
from triax.models.deberta import DebertaConfig, DebertaEncoder, log_buckets
from triax.models.deberta_params import load_deberta

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

LENGTH = 23
# Tiny programs, run once: compiling is what these tests spend their time on.
quick = functools.partial(jax.jit, compiler_options={"xla_backend_optimization_level": 0})
ONE = {"num_hidden_layers": 1, "position_buckets": 16, "max_position_embeddings": 40}


def states(encoder, ids, mask):
    """What goes into the first layer, and what comes out of each."""
    graph, state = nnx.split(encoder)

    @quick
    def run(state, ids, mask):
        encoder = nnx.merge(graph, state)
        relative = encoder.relate(ids.shape[1])
        found = [encoder.embed(ids, None)]
        for layer in encoder.layers:
            found.append(layer(found[-1], mask, relative))
        return found

    return run(state, jnp.asarray(ids), jnp.asarray(mask))


@pytest.mark.parametrize(
    ("length", "changes"),
    [
        (23, {"position_buckets": 256}),
        (23, {**ONE, "max_position_embeddings": 512}),
        (40, {**ONE, "position_buckets": 8}),
        (23, {**ONE, "pos_att_type": ["p2c"], "max_relative_positions": 24}),
        (23, {**ONE, "pos_att_type": ["c2p"], "position_buckets": -1, "max_relative_positions": 9}),
    ],
    ids=lambda value: str(value),
)
def test_every_layer_equals_torch(tmp_path, length, changes):
    model = perturb(transformers.DebertaV2Model(torch_config(**changes)))
    model.save_pretrained(tmp_path)
    encoder, _ = load_deberta(tmp_path)
    ids, mask = padded_rows(length)
    with torch.no_grad():
        expected = model(
            torch.tensor(ids), torch.tensor(mask).long(), output_hidden_states=True
        ).hidden_states
    found = states(encoder, ids, mask)
    assert len(found) == len(expected) == encoder.config.num_layers + 1
    for ours, theirs in zip(found, expected):
        np.testing.assert_allclose(np.asarray(ours)[mask], theirs.numpy()[mask], atol=1e-4, rtol=0)
    assert np.abs(np.asarray(found[-1])[mask]).max() > 1


def test_called_as_any_encoder_it_equals_torch_with_gradients(tmp_path):
    model = perturb(transformers.DebertaV2Model(torch_config(**ONE)))
    model.save_pretrained(tmp_path)
    encoder, _ = load_deberta(tmp_path)
    ids, mask = padded_rows(LENGTH)
    hidden = model(torch.tensor(ids), torch.tensor(mask).long()).last_hidden_state
    (hidden[:, 0] ** 3).mean().backward()
    graph, state = nnx.split(encoder)

    def ours(state):
        hidden = nnx.merge(graph, state)(jnp.asarray(ids), jnp.asarray(mask))
        return (hidden[:, 0] ** 3).mean(), hidden

    (_, got), slope = quick(jax.value_and_grad(ours, has_aux=True))(state)
    np.testing.assert_allclose(
        np.asarray(got)[mask], hidden.detach().numpy()[mask], atol=1e-4, rtol=0
    )
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(slope))
    first = model.encoder.layer[0].attention.self
    for name, expected in (
        ("query", first.query_proj.weight.grad.numpy().T),
        ("key", first.key_proj.weight.grad.numpy().T),
    ):
        np.testing.assert_allclose(
            slope["layers"][0][name]["kernel"].get_value(), expected, atol=1e-4
        )
    np.testing.assert_allclose(
        slope["relative"]["embedding"].get_value(),
        model.encoder.rel_embeddings.weight.grad.numpy(),
        atol=1e-4,
    )


@pytest.mark.parametrize(
    ("buckets", "distances"), [(256, 512), (64, 512), (16, 512), (8, 512), (16, 24), (2, 9)]
)
def test_buckets_of_all_distances_equal_torch(buckets, distances):
    from transformers.models.deberta_v2.modeling_deberta_v2 import make_log_bucket_position

    distance = torch.arange(-(distances - 1), distances)
    expected = make_log_bucket_position(distance, buckets, distances).long()
    np.testing.assert_array_equal(log_buckets(distances, buckets, distances), expected.numpy())


def test_buckets_that_leave_nothing_to_far_distances_are_refused():
    # Near ones need no logarithm, so that a short table may have more buckets than distances.
    np.testing.assert_array_equal(log_buckets(3, 64, 20), [-2, -1, 0, 1, 2])
    for buckets in (1, 40):
        with pytest.raises(ValueError, match=f"{buckets} buckets for distances below 20"):
            log_buckets(40, buckets, 20)


def build(dtype=jnp.float32):
    return DebertaEncoder(DebertaConfig.from_hf({**SHAPE, **ONE}), dtype, rngs=nnx.Rngs(0))


@pytest.fixture(scope="module")
def tiny():
    return build()


@pytest.fixture(scope="module")
def call():
    """call(encoder, ids, mask, dropout_key), compiled."""

    @functools.partial(quick, static_argnums=0)
    def run(graph, state, ids, mask, key):
        return nnx.merge(graph, state)(ids, mask, dropout_key=key)

    return lambda encoder, ids, mask, key=None: run(*nnx.split(encoder), ids, mask, key)


def rows():
    return tuple(map(jnp.asarray, padded_rows(LENGTH)))


def test_padding_has_no_influence(tiny, call):
    ids, mask = rows()
    one, two = call(tiny, ids, mask), call(tiny, jnp.where(mask, ids, 7), mask)
    np.testing.assert_allclose(np.asarray(one)[mask], np.asarray(two)[mask], atol=1e-6)
    assert np.isfinite(np.asarray(call(tiny, ids, jnp.zeros_like(mask)))).all()


def test_dropout_needs_a_key_and_repeats_with_it(tiny, call):
    ids, mask = rows()
    one, two = (jax.random.key(seed, impl="rbg") for seed in (3, 4))  # compiles faster
    plain, dropped = call(tiny, ids, mask), call(tiny, ids, mask, one)
    assert np.abs(np.asarray(dropped - plain)).max() > 1e-2
    np.testing.assert_array_equal(dropped, call(tiny, ids, mask, one))
    assert np.abs(np.asarray(dropped - call(tiny, ids, mask, two))).max() > 1e-2


def test_bfloat16_computes_in_bfloat16_with_float32_weights(tiny, call):
    half = build(jnp.bfloat16)
    ids, mask = rows()
    out = call(half, ids, mask)
    assert out.dtype == jnp.bfloat16
    assert {leaf.dtype for leaf in jax.tree.leaves(nnx.state(half))} == {jnp.dtype("float32")}
    full = call(tiny, ids, mask)
    # Unit-variance outputs; bfloat16 keeps 8 bits.
    np.testing.assert_allclose(np.asarray(out, np.float32)[mask], np.asarray(full)[mask], atol=0.06)


def test_adapters_go_into_all_layers_by_their_default_names(tiny, call):
    encoder = build()
    ids, mask = rows()
    plain = call(tiny, ids, mask)
    assert add_lora(encoder, 2, nnx.Rngs(1)) == len(ENCODER_LAYERS) * tiny.config.num_layers
    np.testing.assert_allclose(call(encoder, ids, mask), plain, atol=1e-6)
    (layer,) = encoder.layers
    for name in ("query", "key"):
        adapter = getattr(layer, name)
        adapter.lora_b[...] = jnp.asarray(np.random.default_rng(0).standard_normal((2, 32)))
    adapted = call(encoder, ids, mask)
    assert np.abs(np.asarray(adapted - plain)).max() > 1e-2
    # An adapter is in the projection of positions too, so that merging changes nothing.
    merge_lora(encoder)
    np.testing.assert_allclose(call(encoder, ids, mask), adapted, atol=1e-4)


def test_rows_longer_than_the_positions_are_refused(tiny):
    with pytest.raises(ValueError, match="rows of 41 tokens, .* 40"):
        tiny(jnp.zeros((1, 41), jnp.int32), jnp.ones((1, 41), bool))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"model_type": "deberta"}, "model_type is 'deberta', expected 'deberta-v2'"),
        ({"relative_attention": False}, "relative_attention is False, but only True"),
        ({"share_att_key": False}, "share_att_key is False"),
        ({"position_biased_input": True}, "position_biased_input is True, but only False"),
        ({"norm_rel_ebd": "none"}, "norm_rel_ebd is 'none'"),
        ({"hidden_act": "relu"}, "hidden_act is 'relu'"),
        ({"pooler_hidden_act": "tanh"}, "pooler_hidden_act is 'tanh'"),
        ({"type_vocab_size": 2}, "type_vocab_size is 2"),
        ({"conv_kernel_size": 3}, "conv_kernel_size is 3"),
        ({"embedding_size": 16}, "embedding_size is 16, but only 32"),
        ({"pooler_hidden_size": 16}, "pooler_hidden_size is 16"),
        ({"attention_head_size": 16}, "attention_head_size is 16, but only 8"),
        ({"pos_att_type": "p2p|c2p"}, "pos_att_type is .*'p2p'"),
        ({"num_attention_heads": 5}, "not a multiple of the 5"),
    ],
)
def test_options_that_are_not_built_are_refused(change, message):
    with pytest.raises(ValueError, match=message):
        DebertaConfig.from_hf({**SHAPE, **change})


def test_what_the_file_leaves_out_has_the_meaning_of_transformers():
    defaults = transformers.DebertaV2Config()
    for key in ("relative_attention", "position_biased_input"):
        shape = {name: value for name, value in SHAPE.items() if name != key}
        assert getattr(defaults, key) != SHAPE[key]
        with pytest.raises(ValueError, match=rf"{key} is {getattr(defaults, key)} \(config.json"):
            DebertaConfig.from_hf(shape)


def test_the_shape_of_deberta_v3_base():
    # What the published config.json says of sizes.
    config = DebertaConfig.from_hf(
        SHAPE
        | {
            "vocab_size": 128100,
            "hidden_size": 768,
            "num_hidden_layers": 12,
            "num_attention_heads": 12,
            "intermediate_size": 3072,
            "layer_norm_eps": 1e-7,
            "pooler_hidden_size": 768,
        }
    )
    assert (config.width, config.num_layers, config.span) == (768, 12, 256)
    assert (config.max_length, config.max_distance, config.num_token_types) == (512, 512, 0)
    assert config.position_kinds == ("c2p", "p2c") and config.pad_id is None
