"""The reference is PyTorch's transformers, on random weights that both sides read from disk."""

import os

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from triax.models.decoder import (
    Decoder,
    DecoderConfig,
    Llama3Scaling,
    init_cache,
    rotary_frequencies,
)
from triax.models.decoder_params import load_decoder

os.environ.setdefault("HF_HUB_OFFLINE", "1")

SHAPE = {
    "vocab_size": 96,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 64,
    "initializer_range": 0.3,
    "bos_token_id": None,
    "eos_token_id": None,
    "pad_token_id": 0,
}
LLAMA3 = {
    "rope_type": "llama3",
    "rope_theta": 500_000.0,
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    # Short, so that the four frequencies of a head lie in all three ranges.
    "original_max_position_embeddings": 32,
}
FAMILIES = {
    "llama_tied": ("Llama", {"tie_word_embeddings": True, "rms_norm_eps": 1e-5}),
    "llama3_scaled": ("Llama", {"tie_word_embeddings": False, "rope_parameters": LLAMA3}),
    "qwen2": ("Qwen2", {"tie_word_embeddings": True}),
    "qwen3": ("Qwen3", {"tie_word_embeddings": True, "head_dim": 16}),
}
BATCH, LENGTH, SLOTS, NEW = 3, 8, 16, 8
# Whole, padded on the left, padded on the right.
MASK = np.array([[1] * 8, [0] * 3 + [1] * 5, [1] * 6 + [0] * 2], bool)
IDS = np.random.default_rng(0).integers(1, 96, (BATCH, LENGTH)) * MASK


@pytest.fixture(scope="module", params=FAMILIES)
def both(request, tmp_path_factory):
    """A torch model and ours with its weights."""
    torch = pytest.importorskip("torch")
    import transformers

    family, options = FAMILIES[request.param]
    torch.manual_seed(0)
    config = getattr(transformers, f"{family}Config")(**SHAPE, **options)
    oracle = getattr(transformers, f"{family}ForCausalLM")(config).eval()
    with torch.no_grad():
        for name, weight in oracle.named_parameters():
            if name.endswith("bias") or "norm" in name:
                weight.add_(torch.randn_like(weight) * 0.3)
    folder = tmp_path_factory.mktemp(request.param)
    oracle.save_pretrained(folder)
    decoder, config = load_decoder(folder)
    return torch, oracle, decoder, config


@pytest.fixture(scope="module")
def forward():
    return nnx.jit(lambda decoder, ids, mask: decoder(ids, mask))


@pytest.fixture(scope="module")
def extend():
    def run(decoder, ids, positions, key_mask, cache, index):
        hidden, cache = decoder.extend(ids, positions, key_mask, cache, index)
        return decoder.logits(hidden), cache

    return nnx.jit(run)


def positions_of(mask):
    return np.maximum(np.cumsum(mask, 1) - 1, 0)


def test_logits_equal_torch(both, forward):
    torch, oracle, decoder, _ = both
    with torch.no_grad():
        expected = oracle(
            torch.tensor(IDS),
            attention_mask=torch.tensor(MASK).long(),
            position_ids=torch.tensor(positions_of(MASK)),
        ).logits.numpy()
    found = np.asarray(forward(decoder, jnp.asarray(IDS), jnp.asarray(MASK)))
    assert np.abs(expected[MASK]).max() > 1
    np.testing.assert_allclose(found[MASK], expected[MASK], atol=1e-4)


def test_two_pieces_through_the_cache_equal_one_forward(both, forward, extend):
    _, _, decoder, config = both
    whole = np.asarray(forward(decoder, jnp.asarray(IDS), jnp.asarray(MASK)))
    key_mask = jnp.asarray(np.pad(MASK, ((0, 0), (0, SLOTS - LENGTH)), constant_values=True))
    cache = init_cache(config, BATCH, SLOTS)
    pieces = []
    for start in (0, LENGTH // 2):
        piece = slice(start, start + LENGTH // 2)
        logits, cache = extend(
            decoder,
            jnp.asarray(IDS[:, piece]),
            jnp.asarray(positions_of(MASK)[:, piece]),
            key_mask,
            cache,
            jnp.int32(start),
        )
        pieces.append(np.asarray(logits))
    np.testing.assert_allclose(np.concatenate(pieces, 1)[MASK], whole[MASK], atol=1e-5)


def test_greedy_continuation_equals_torch(both, extend):
    torch, oracle, decoder, config = both
    rows = slice(0, 2)  # generation pads on the left only
    ids, mask = IDS[rows], MASK[rows]
    expected = oracle.generate(
        torch.tensor(ids),
        attention_mask=torch.tensor(mask).long(),
        max_new_tokens=NEW,
        do_sample=False,
    ).numpy()[:, LENGTH:]
    key_mask = jnp.asarray(np.pad(mask, ((0, 0), (0, SLOTS - LENGTH)), constant_values=True))
    positions = jnp.asarray(positions_of(mask))
    cache = init_cache(config, len(ids), SLOTS)
    logits, cache = extend(decoder, jnp.asarray(ids), positions, key_mask, cache, jnp.int32(0))
    found = [jnp.argmax(logits[:, -1], -1)]
    for step in range(NEW - 1):
        new, position = found[-1][:, None], positions[:, -1:] + 1 + step
        logits, cache = extend(decoder, new, position, key_mask, cache, jnp.int32(LENGTH + step))
        found.append(jnp.argmax(logits[:, -1], -1))
    np.testing.assert_array_equal(np.stack(found, 1), expected)


def test_bfloat16_weights_give_near_logits():
    config = DecoderConfig(96, 32, 48, 2, 4, 2, 8, tie_embeddings=True)
    wide = Decoder(config, rngs=nnx.Rngs(0))
    narrow = Decoder(config, dtype=jnp.bfloat16, rngs=nnx.Rngs(0))
    graphdef = nnx.graphdef(narrow)
    state = jax.tree.map(lambda weight: weight.astype(jnp.bfloat16), nnx.state(wide))
    narrow = nnx.merge(graphdef, state)
    ids, mask = jnp.asarray(IDS), jnp.asarray(MASK)
    first, second = np.asarray(wide(ids, mask)), narrow(ids, mask)
    assert second.dtype == jnp.float32
    # bfloat16 keeps 8 bits: about 1 % after two layers.
    assert np.abs(first - np.asarray(second))[MASK].max() < 0.05 * np.abs(first).max()


def test_config_from_both_generations_of_transformers():
    old = {
        "model_type": "llama",
        "vocab_size": 128,
        "hidden_size": 64,
        "intermediate_size": 96,
        "num_hidden_layers": 3,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "rms_norm_eps": 1e-5,
        "rope_theta": 500_000.0,
        "rope_scaling": {
            "rope_type": "llama3",
            "factor": 8.0,
            "low_freq_factor": 1.0,
            "high_freq_factor": 4.0,
            "original_max_position_embeddings": 8192,
        },
    }
    new = {name: value for name, value in old.items() if not name.startswith("rope")}
    new["rope_parameters"] = {**old["rope_scaling"], "rope_theta": 500_000.0}
    config = DecoderConfig.from_hf(old)
    assert config == DecoderConfig.from_hf(new)
    assert config.rope_scaling == Llama3Scaling(8.0, 1.0, 4.0, 8192)
    assert (config.rope_theta, config.head_dim, config.tie_embeddings) == (500_000.0, 16, False)
    assert DecoderConfig.from_hf({**old, "rope_scaling": None}).rope_scaling is None


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"model_type": "gemma3"}, "model_type is 'gemma3'"),
        ({"rope_scaling": {"type": "yarn", "factor": 4.0}}, "rope_type is 'yarn'"),
        ({"use_sliding_window": True}, "use_sliding_window=True"),
        ({"attention_bias": True}, "attention_bias=True"),
        ({"hidden_act": "gelu"}, "hidden_act='gelu'"),
    ],
)
def test_what_is_not_computed_is_refused(change, said):
    config = {
        "model_type": "llama",
        "vocab_size": 8,
        "hidden_size": 8,
        "intermediate_size": 8,
        "num_hidden_layers": 1,
        "num_attention_heads": 1,
    }
    with pytest.raises(ValueError, match=said):
        DecoderConfig.from_hf({**config, **change})


def test_llama3_scaling_keeps_fast_and_stretches_slow_frequencies():
    plain = DecoderConfig(8, 128, 8, 1, 1, 1, 128, rope_theta=500_000.0)
    scaled = DecoderConfig(
        8,
        128,
        8,
        1,
        1,
        1,
        128,
        rope_theta=500_000.0,
        rope_scaling=Llama3Scaling(8.0, 1.0, 4.0, 8192),
    )
    ratio = rotary_frequencies(plain) / rotary_frequencies(scaled)
    # Wavelengths below 8192 / 4 stay; those above 8192 are 8 times as long.
    wavelengths = 2 * np.pi / rotary_frequencies(plain)
    np.testing.assert_allclose(ratio[wavelengths < 2048], 1.0, rtol=1e-6)
    np.testing.assert_allclose(ratio[wavelengths > 8192], 8.0, rtol=1e-6)


def test_the_cache_has_one_pair_of_arrays_a_layer():
    config = DecoderConfig(96, 32, 48, 2, 4, 2, 8)
    cache = init_cache(config, batch=3, slots=5, dtype=jnp.bfloat16)
    assert len(cache) == 2
    assert all(part.shape == (3, 5, 2, 8) and part.dtype == jnp.bfloat16 for part in cache[1])
