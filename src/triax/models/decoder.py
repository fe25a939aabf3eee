"""Llama-family decoder: Llama 2 and 3, SmolLM2, Qwen2, Qwen2.5 and Qwen3, in flax.nnx.

Attribute names are those of the published checkpoints, so that a weight's name is its path.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from jaxtyping import Array, Bool, Float, Int

LayerCache = tuple[
    Float[Array, "batch slots kv_heads head_dim"], Float[Array, "batch slots kv_heads head_dim"]
]
# One (keys, values) pair a layer. Slots are filled in the order of decoding.
KVCache = tuple[LayerCache, ...]


@dataclass(frozen=True, slots=True)
class Llama3Scaling:
    """Stretching of slow rotary frequencies for long contexts (Llama 3.1).

    Wavelengths (in tokens) above `original_length / low_freq_factor` grow by `factor`, those
    below `original_length / high_freq_factor` stay, those between are interpolated.
    """

    factor: float
    low_freq_factor: float
    high_freq_factor: float
    original_length: int


@dataclass(frozen=True, slots=True)
class DecoderConfig:
    """Shape of a decoder. `qkv_bias` is Qwen2's, `qk_norm` is Qwen3's."""

    vocab_size: int
    hidden_size: int
    intermediate_size: int
    num_layers: int
    num_heads: int
    num_kv_heads: int
    head_dim: int
    rms_norm_eps: float = 1e-6
    rope_theta: float = 10_000.0
    rope_scaling: Llama3Scaling | None = None
    tie_embeddings: bool = False
    qkv_bias: bool = False
    qk_norm: bool = False

    @classmethod
    def from_hf(cls, config: Mapping[str, Any]) -> "DecoderConfig":
        """Reads the content of a config.json, of transformers 5 or older.

        Raises:
            ValueError: the model type, or an option of it, is not one that `Decoder` computes.
        """
        kind = config.get("model_type")
        if kind not in ("llama", "qwen2", "qwen3"):
            raise ValueError(
                f"model_type is {kind!r}; the decoder knows llama (SmolLM2 too), qwen2 and qwen3"
            )
        _refuse_options(config)
        theta, scaling = _rope(config)
        heads = config["num_attention_heads"]
        return cls(
            vocab_size=config["vocab_size"],
            hidden_size=config["hidden_size"],
            intermediate_size=config["intermediate_size"],
            num_layers=config["num_hidden_layers"],
            num_heads=heads,
            num_kv_heads=config.get("num_key_value_heads") or heads,
            head_dim=config.get("head_dim") or config["hidden_size"] // heads,
            rms_norm_eps=float(config.get("rms_norm_eps", 1e-6)),
            rope_theta=theta,
            rope_scaling=scaling,
            tie_embeddings=bool(config.get("tie_word_embeddings", False)),
            qkv_bias=kind == "qwen2",
            qk_norm=kind == "qwen3",
        )


def _refuse_options(config: Mapping[str, Any]) -> None:
    """Raises for options that would silently change the numbers."""
    expected = {
        "hidden_act": "silu",
        "attention_bias": False,
        "mlp_bias": False,
        "use_sliding_window": False,
        "partial_rotary_factor": 1.0,
    }
    for name, value in expected.items():
        if config.get(name, value) != value:
            raise ValueError(
                f"config.json has {name}={config[name]!r}; the decoder computes only {value!r}"
            )


def _rope(config: Mapping[str, Any]) -> tuple[float, Llama3Scaling | None]:
    """Base and scaling: in `rope_parameters` since transformers 5, at the top level before."""
    parameters = dict(config.get("rope_scaling") or {})
    parameters.update(config.get("rope_parameters") or {})
    theta = float(parameters.get("rope_theta", config.get("rope_theta") or 10_000.0))
    kind = parameters.get("rope_type", parameters.get("type", "default"))
    if kind == "default":
        return theta, None
    if kind != "llama3":
        raise ValueError(f"rope_type is {kind!r}; the decoder knows 'default' and 'llama3'")
    scaling = Llama3Scaling(
        factor=float(parameters["factor"]),
        low_freq_factor=float(parameters["low_freq_factor"]),
        high_freq_factor=float(parameters["high_freq_factor"]),
        original_length=int(parameters["original_max_position_embeddings"]),
    )
    return theta, scaling


def rotary_frequencies(config: DecoderConfig) -> np.ndarray:
    """Radians a position for each pair of dimensions, float32 [head_dim / 2]."""
    exponents = np.arange(0, config.head_dim, 2) / config.head_dim
    frequencies = 1.0 / config.rope_theta**exponents
    if scaling := config.rope_scaling:
        turns = scaling.original_length * frequencies / (2 * np.pi)
        span = scaling.high_freq_factor - scaling.low_freq_factor
        kept = np.clip((turns - scaling.low_freq_factor) / span, 0.0, 1.0)
        frequencies = (1.0 - kept) * frequencies / scaling.factor + kept * frequencies
    return frequencies.astype(np.float32)


def rotate(
    x: Float[Array, "batch length heads head_dim"],
    positions: Int[Array, "batch length"],
    frequencies: Float[Array, " half"],
) -> Float[Array, "batch length heads head_dim"]:
    """Rotary position embedding on halves, as Hugging Face lays it out (RoFormer, section 3.2)."""
    angles = positions[..., None, None].astype(jnp.float32) * frequencies
    cos, sin = jnp.cos(angles), jnp.sin(angles)
    left, right = jnp.split(x.astype(jnp.float32), 2, axis=-1)
    turned = jnp.concatenate([left * cos - right * sin, right * cos + left * sin], axis=-1)
    return turned.astype(x.dtype)


class Attention(nnx.Module):
    """Grouped-query self-attention with rotary positions."""

    def __init__(self, config: DecoderConfig, *, dtype: Any, rngs: nnx.Rngs):
        linear = partial(nnx.Linear, dtype=dtype, param_dtype=dtype, rngs=rngs, kernel_init=_INIT)
        self.head_dim = config.head_dim
        self.rotary = tuple(float(value) for value in rotary_frequencies(config))
        queries, keys = config.num_heads * config.head_dim, config.num_kv_heads * config.head_dim
        self.q_proj = linear(config.hidden_size, queries, use_bias=config.qkv_bias)
        self.k_proj = linear(config.hidden_size, keys, use_bias=config.qkv_bias)
        self.v_proj = linear(config.hidden_size, keys, use_bias=config.qkv_bias)
        self.o_proj = linear(queries, config.hidden_size, use_bias=False)
        self.has_norms = config.qk_norm
        if self.has_norms:
            norm = partial(_norm, config.head_dim, config, dtype=dtype, rngs=rngs)
            self.q_norm, self.k_norm = norm(), norm()

    def __call__(
        self,
        x: Float[Array, "batch length hidden"],
        positions: Int[Array, "batch length"],
        mask: Bool[Array, "batch 1 length keys"],
        cache: LayerCache | None = None,
        index: Int[Array, ""] | int = 0,
    ) -> tuple[Float[Array, "batch length hidden"], LayerCache | None]:
        """Attends to the new tokens, or to all of the cache once they are written to it."""
        batch, length, _ = x.shape
        heads = (batch, length, -1, self.head_dim)
        query, key = self.q_proj(x).reshape(heads), self.k_proj(x).reshape(heads)
        value = self.v_proj(x).reshape(heads)
        if self.has_norms:
            query, key = self.q_norm(query), self.k_norm(key)
        rotary = jnp.asarray(self.rotary, jnp.float32)
        query, key = rotate(query, positions, rotary), rotate(key, positions, rotary)
        if cache is not None:
            write = partial(jax.lax.dynamic_update_slice_in_dim, start_index=index, axis=1)
            keys, values = cache
            cache = (write(keys, key.astype(keys.dtype)), write(values, value.astype(values.dtype)))
            key, value = cache[0].astype(query.dtype), cache[1].astype(query.dtype)
        attended = jax.nn.dot_product_attention(query, key, value, mask=mask)
        return self.o_proj(attended.reshape(batch, length, -1)), cache


class GatedMLP(nnx.Module):
    """SwiGLU feed-forward layer."""

    def __init__(self, config: DecoderConfig, *, dtype: Any, rngs: nnx.Rngs):
        linear = partial(
            nnx.Linear, use_bias=False, dtype=dtype, param_dtype=dtype, rngs=rngs, kernel_init=_INIT
        )
        self.gate_proj = linear(config.hidden_size, config.intermediate_size)
        self.up_proj = linear(config.hidden_size, config.intermediate_size)
        self.down_proj = linear(config.intermediate_size, config.hidden_size)

    def __call__(
        self, x: Float[Array, "batch length hidden"]
    ) -> Float[Array, "batch length hidden"]:
        """Applies the layer to every position."""
        return self.down_proj(nnx.silu(self.gate_proj(x)) * self.up_proj(x))


class DecoderLayer(nnx.Module):
    """Attention and feed-forward, each behind a norm and beside a residual path."""

    def __init__(self, config: DecoderConfig, *, dtype: Any, rngs: nnx.Rngs):
        self.input_layernorm = _norm(config.hidden_size, config, dtype=dtype, rngs=rngs)
        self.self_attn = Attention(config, dtype=dtype, rngs=rngs)
        self.post_attention_layernorm = _norm(config.hidden_size, config, dtype=dtype, rngs=rngs)
        self.mlp = GatedMLP(config, dtype=dtype, rngs=rngs)

    def __call__(
        self,
        x: Float[Array, "batch length hidden"],
        positions: Int[Array, "batch length"],
        mask: Bool[Array, "batch 1 length keys"],
        cache: LayerCache | None = None,
        index: Int[Array, ""] | int = 0,
    ) -> tuple[Float[Array, "batch length hidden"], LayerCache | None]:
        """One layer; `cache` and `index` as in `Attention`."""
        attended, cache = self.self_attn(self.input_layernorm(x), positions, mask, cache, index)
        x = x + attended
        return x + self.mlp(self.post_attention_layernorm(x)), cache


class Decoder(nnx.Module):
    """A causal language model. Layers are unrolled: a scan would copy weights at every token."""

    def __init__(self, config: DecoderConfig, *, dtype: Any = jnp.float32, rngs: nnx.Rngs):
        self.config = config
        self.embed_tokens = nnx.Embed(
            config.vocab_size,
            config.hidden_size,
            dtype=dtype,
            param_dtype=dtype,
            embedding_init=_INIT,
            rngs=rngs,
        )
        self.layers = nnx.List(
            DecoderLayer(config, dtype=dtype, rngs=rngs) for _ in range(config.num_layers)
        )
        self.norm = _norm(config.hidden_size, config, dtype=dtype, rngs=rngs)
        if not config.tie_embeddings:
            self.lm_head = nnx.Linear(
                config.hidden_size,
                config.vocab_size,
                use_bias=False,
                dtype=dtype,
                param_dtype=dtype,
                kernel_init=_INIT,
                rngs=rngs,
            )

    def __call__(
        self, ids: Int[Array, "batch length"], mask: Bool[Array, "batch length"]
    ) -> Float[Array, "batch length vocab"]:
        """Logits of the next token at every position.

        `mask` is True on tokens; padding may stand on either side. What comes out at padded
        positions has no meaning.
        """
        return self.logits(self.hidden(ids, mask))

    def hidden(
        self,
        ids: Int[Array, "batch length"],
        mask: Bool[Array, "batch length"],
        *,
        remat: bool = False,
    ) -> Float[Array, "batch length hidden"]:
        """Hidden states after the last norm (see `logits`); `mask` as in the call.

        With `remat` a gradient keeps the input of each layer only and computes the rest again.
        """
        positions = jnp.maximum(jnp.cumsum(mask, axis=1) - 1, 0)
        causal = jnp.tril(jnp.ones((ids.shape[1],) * 2, bool))
        allowed = (causal & mask[:, None, :])[:, None]
        x = self.embed_tokens(ids)
        for layer in self.layers:
            run = partial(_layer_output, layer, positions, allowed)
            x = jax.checkpoint(run)(x) if remat else run(x)
        return self.norm(x)

    def extend(
        self,
        ids: Int[Array, "batch length"],
        positions: Int[Array, "batch length"],
        key_mask: Bool[Array, "batch slots"],
        cache: KVCache,
        index: Int[Array, ""] | int,
    ) -> tuple[Float[Array, "batch length hidden"], KVCache]:
        """Reads `length` more tokens and puts their keys and values at cache slots `index`, ....

        New token t sees slot s where `key_mask[:, s]` is True and s <= index + t. `positions` are
        those of the text (padding not counted). `index` may be traced, so one compilation serves
        every piece of a prompt; `index + length` must not exceed the slots (XLA would clamp it).

        Returns:
            Hidden states after the last norm (see `logits`), and the new cache.
        """
        slots = jnp.arange(key_mask.shape[1])
        reached = slots[None, :] <= index + jnp.arange(ids.shape[1])[:, None]
        allowed = (reached[None] & key_mask[:, None, :])[:, None]
        x = self.embed_tokens(ids)
        extended = []
        for layer, layer_cache in zip(self.layers, cache, strict=True):
            x, layer_cache = layer(x, positions, allowed, layer_cache, index)
            extended.append(layer_cache)
        return self.norm(x), tuple(extended)

    def logits(self, hidden: Float[Array, "*lead hidden"]) -> Float[Array, "*lead vocab"]:
        """Scores of every token, float32, from hidden states."""
        head = self.embed_tokens.attend if self.config.tie_embeddings else self.lm_head
        return head(hidden).astype(jnp.float32)


def init_cache(
    config: DecoderConfig,
    batch: int,
    slots: int,
    dtype: Any = jnp.float32,
    sharding: jax.sharding.Sharding | None = None,
) -> KVCache:
    """An empty cache: for each layer keys and values [batch, slots, kv_heads, head_dim].

    With a sharding each device makes its own part only.
    """
    shape = (batch, slots, config.num_kv_heads, config.head_dim)
    zeros = partial(jnp.zeros, shape, dtype, device=sharding)
    return tuple((zeros(), zeros()) for _ in range(config.num_layers))


def _layer_output(
    layer: DecoderLayer, positions: Array, allowed: Array, x: Float[Array, "batch length hidden"]
) -> Float[Array, "batch length hidden"]:
    return layer(x, positions, allowed)[0]


_INIT = nnx.initializers.normal(0.02)


def _norm(size: int, config: DecoderConfig, *, dtype: Any, rngs: nnx.Rngs) -> nnx.RMSNorm:
    return nnx.RMSNorm(size, epsilon=config.rms_norm_eps, dtype=dtype, param_dtype=dtype, rngs=rngs)
