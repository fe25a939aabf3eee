"""BERT-like text encoders in Flax: BERT, RoBERTa and MPNet, for inference and fine-tuning.

Sources: BERT (Devlin et al. 2019, section 3), RoBERTa (Liu et al. 2019), MPNet (Song et al. 2020,
with the shared relative position bias of T5, Raffel et al. 2020, section 2.1).
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from jaxtyping import Array, Bool, Float, Int, Key

Pooling = Literal["mean", "cls"]
_MODEL_TYPES = ("bert", "mpnet", "roberta", "xlm-roberta", "camembert")
_INIT = nnx.initializers.normal(0.02)


@dataclass(frozen=True, slots=True)
class EncoderConfig:
    """The shape of an encoder.

    `pad_id` None means positions 0, 1, 2, ... in every row (BERT). Otherwise positions count the
    tokens that are not `pad_id` and begin at `pad_id + 1` (RoBERTa, MPNet). `num_token_types` and
    `num_relative_buckets` are 0 where the model has no such table.
    """

    model_type: str
    vocab_size: int
    width: int
    num_layers: int
    num_heads: int
    inner_width: int
    num_positions: int
    num_token_types: int = 2
    num_relative_buckets: int = 0
    pad_id: int | None = None
    layer_norm_eps: float = 1e-12
    dropout: float = 0.1
    attention_dropout: float = 0.1

    @classmethod
    def from_hf(cls, config: Mapping[str, Any]) -> "EncoderConfig":
        """Reads the object of a Hugging Face config.json.

        Raises:
            ValueError: the model is of another family, or uses an option that is not built here.
        """
        kind = config.get("model_type", "")
        if kind not in _MODEL_TYPES:
            raise ValueError(f"model_type {kind!r} is no encoder known here; known: {_MODEL_TYPES}")
        allowed = {"hidden_act": "gelu", "position_embedding_type": "absolute"}
        for key, value in allowed.items():
            if config.get(key, value) != value:
                raise ValueError(f"{key} is {config[key]!r}, but only {value!r} is built here")
        if config.get("is_decoder") or config.get("add_cross_attention"):
            raise ValueError("the configuration asks for a decoder; expected an encoder")
        check_heads(config)
        is_mpnet = kind == "mpnet"
        return cls(
            model_type=kind,
            vocab_size=config["vocab_size"],
            width=config["hidden_size"],
            num_layers=config["num_hidden_layers"],
            num_heads=config["num_attention_heads"],
            inner_width=config["intermediate_size"],
            num_positions=config["max_position_embeddings"],
            num_token_types=0 if is_mpnet else config.get("type_vocab_size", 2),
            num_relative_buckets=config.get("relative_attention_num_buckets", 32) * is_mpnet,
            # MPNet's positions are built for 1, whatever the configuration says.
            pad_id={"bert": None, "mpnet": 1}.get(kind, config.get("pad_token_id", 1)),
            layer_norm_eps=config.get("layer_norm_eps", 1e-12),
            dropout=config.get("hidden_dropout_prob", 0.1),
            attention_dropout=config.get("attention_probs_dropout_prob", 0.1),
        )

    @property
    def max_length(self) -> int:
        """The longest row, in tokens, that has positions."""
        return self.num_positions - (0 if self.pad_id is None else self.pad_id + 1)


def check_heads(config: Mapping[str, Any]) -> None:
    """Refuses a config.json whose width cannot be shared among its heads.

    Raises:
        ValueError: hidden_size is not a multiple of num_attention_heads.
    """
    if config["hidden_size"] % config["num_attention_heads"]:
        raise ValueError(
            f"hidden_size {config['hidden_size']} is not a multiple of the "
            f"{config['num_attention_heads']} attention heads"
        )


def dropout(x: Float[Array, "..."], rate: float, key: Key[Array, ""] | None) -> Float[Array, "..."]:
    """Sets a share `rate` of the entries to 0 and scales the others; no key means no dropout."""
    if key is None or rate == 0.0:
        return x
    keep = jax.random.bernoulli(key, 1.0 - rate, x.shape)
    return jnp.where(keep, x / (1.0 - rate), 0).astype(x.dtype)


def gelu(x: Float[Array, "..."]) -> Float[Array, "..."]:
    """x times the normal distribution's share below x (Hendrycks and Gimpel 2016, section 2).

    By erf, as torch computes it; `jax.nn.gelu` goes by erfc, whose two branches cost more.
    """
    return x * (0.5 + 0.5 * jax.lax.erf(x * 0.5**0.5))


def relative_buckets(
    length: int, num_buckets: int, max_distance: int = 128
) -> Int[np.ndarray, " distances"]:
    """The bucket of each signed distance key - query, from -(length - 1) to length - 1.

    Half of the buckets are for keys on the right. Of each half, one half holds the exact small
    distances and the other grows logarithmically up to `max_distance` (T5, section 2.1).
    """
    distance = np.arange(-(length - 1), length)
    half = num_buckets // 2
    exact = half // 2
    size = np.abs(distance)
    # float32, as torch computes it: a bucket border must fall on the same side.
    ratio = np.log(np.maximum(size, 1).astype(np.float32) / np.float32(exact))
    scale = np.float32(math.log(max_distance / exact))
    large = exact + (ratio / scale * np.float32(half - exact)).astype(np.int32)
    bucket = np.where(size < exact, size, np.minimum(large, half - 1))
    return (bucket + half * (distance > 0)).astype(np.int32)


def toeplitz(
    by_distance: Float[Array, "*batch length distances"],
) -> Float[Array, "*batch length length"]:
    """out[..., i, j] = by_distance[..., i, j - i + length - 1], by pad and reshape, not by gather.

    The last axis goes over the signed distances j - i from -(length - 1) to length - 1. A gather
    would cost more, and its gradient is a scatter.
    """
    *batch, length, distances = by_distance.shape
    flat = jnp.pad(by_distance, [(0, 0)] * (len(batch) + 1) + [(0, 1)])
    flat = flat.reshape(*batch, length * (distances + 1))
    flat = flat[..., length - 1 : length - 1 + length * distances]
    return flat.reshape(*batch, length, distances)[..., :length]


class EncoderLayer(nnx.Module):
    """One post-norm block: self-attention, then a two-layer GELU network (BERT, section 3)."""

    def __init__(self, config: EncoderConfig, dtype: jnp.dtype, *, rngs: nnx.Rngs):
        """Random weights, N(0, 0.02) as in BERT."""
        width, inner = config.width, config.inner_width
        self.config = config
        self.query = linear(width, width, dtype, rngs)
        self.key = linear(width, width, dtype, rngs)
        self.value = linear(width, width, dtype, rngs)
        self.attention_output = linear(width, width, dtype, rngs)
        self.attention_norm = layer_norm(config, dtype, rngs)
        self.inner = linear(width, inner, dtype, rngs)
        self.output = linear(inner, width, dtype, rngs)
        self.output_norm = layer_norm(config, dtype, rngs)

    def attend(
        self,
        x: Float[Array, "batch length width"],
        mask: Bool[Array, "batch length"],
        bias: Float[Array, "heads length length"] | None,
        key: Key[Array, ""] | None,
    ) -> Float[Array, "batch length width"]:
        """Multi-head self-attention; scores and softmax in float32."""
        width, heads = x.shape[-1], self.config.num_heads
        split = (*x.shape[:-1], heads, width // heads)
        query = self.query(x).reshape(split) * (split[-1] ** -0.5)
        scores = jnp.einsum(
            "bqhd,bkhd->bhqk",
            query,
            self.key(x).reshape(split),
            preferred_element_type=jnp.float32,
        )
        if bias is not None:
            scores += bias
        return self.mix(scores, self.value(x).reshape(split), mask, key)

    def mix(
        self,
        scores: Float[Array, "batch heads length length"],
        values: Float[Array, "batch length heads dimension"],
        mask: Bool[Array, "batch length"],
        key: Key[Array, ""] | None,
    ) -> Float[Array, "batch length width"]:
        """Sums of the values of all heads, weighted by a softmax over the keys in `mask`."""
        scores = jnp.where(mask[:, None, None, :], scores, jnp.finfo(jnp.float32).min)
        weights = jax.nn.softmax(scores, axis=-1).astype(values.dtype)
        weights = dropout(weights, self.config.attention_dropout, key)
        return jnp.einsum("bhqk,bkhd->bqhd", weights, values).reshape(*mask.shape, -1)

    def __call__(
        self,
        x: Float[Array, "batch length width"],
        mask: Bool[Array, "batch length"],
        relative: Float[Array, "..."] | None = None,
        key: Key[Array, ""] | None = None,
    ) -> Float[Array, "batch length width"]:
        """Applies the block; `mask` is True at tokens, `relative` is what `attend` takes third."""
        keys = (None, None, None) if key is None else tuple(jax.random.split(key, 3))
        rate = self.config.dropout
        attended = self.attention_output(self.attend(x, mask, relative, keys[0]))
        x = self.attention_norm(x + dropout(attended, rate, keys[1]))
        out = self.output(gelu(self.inner(x)))
        return self.output_norm(x + dropout(out, rate, keys[2]))


class TransformerEncoder(nnx.Module):
    """Token ids to one vector per token.

    Weights are float32; `dtype` is that of the computation, in which softmax and the statistics
    of LayerNorm stay float32.
    """

    def __init__(
        self, config: EncoderConfig, dtype: jnp.dtype | type = jnp.float32, *, rngs: nnx.Rngs
    ):
        """Random weights, N(0, 0.02) as in BERT."""
        self.config = config
        dtype = jnp.dtype(dtype)
        self.tokens = table(config.vocab_size, config.width, dtype, rngs)
        self.positions = table(config.num_positions, config.width, dtype, rngs)
        if config.num_token_types:
            self.token_types = table(config.num_token_types, config.width, dtype, rngs)
        if config.num_relative_buckets:
            buckets, heads = config.num_relative_buckets, config.num_heads
            self.relative = table(buckets, heads, jnp.dtype(jnp.float32), rngs)
        self.norm = layer_norm(config, dtype, rngs)
        self.layers = nnx.List(
            EncoderLayer(config, dtype, rngs=rngs) for _ in range(config.num_layers)
        )

    def embed(
        self, ids: Int[Array, "batch length"], token_types: Int[Array, "batch length"] | None
    ) -> Float[Array, "batch length width"]:
        """Sum of token, position and token-type vectors, normalised. Types default to 0."""
        pad = self.config.pad_id
        if pad is None:
            x = self.tokens(ids) + self.positions(jnp.arange(ids.shape[1]))
        else:
            real = (ids != pad).astype(jnp.int32)
            x = self.tokens(ids) + self.positions(jnp.cumsum(real, axis=1) * real + pad)
        if self.config.num_token_types:
            types = jnp.zeros_like(ids) if token_types is None else token_types
            x += self.token_types(types)
        return self.norm(x)

    def relate(self, length: int) -> Float[Array, "..."] | None:
        """What the layers take of the relative positions in rows of `length`: here a bias."""
        if not self.config.num_relative_buckets:
            return None
        buckets = relative_buckets(length, self.config.num_relative_buckets)
        bias = self.relative(jnp.asarray(buckets)).T[:, None]
        return toeplitz(jnp.broadcast_to(bias, (len(bias), length, len(buckets))))

    def __call__(
        self,
        ids: Int[Array, "batch length"],
        mask: Bool[Array, "batch length"],
        token_types: Int[Array, "batch length"] | None = None,
        dropout_key: Key[Array, ""] | None = None,
    ) -> Float[Array, "batch length width"]:
        """Encodes rows of token ids.

        Args:
            ids: token ids, any value where `mask` is False (the pad id for RoBERTa and MPNet).
            mask: True at tokens. The output is meaningless where it is False.
            token_types: segment of each token; 0 where not given.
            dropout_key: a key switches dropout on, with the rates of the configuration.

        Raises:
            ValueError: rows are longer than the table of positions.
        """
        length = ids.shape[1]
        if length > self.config.max_length:
            raise ValueError(
                f"rows of {length} tokens, but the model has positions for "
                f"{self.config.max_length}; truncate the texts"
            )
        keys: list[Any] = [None] * (len(self.layers) + 1)
        if dropout_key is not None:
            keys = list(jax.random.split(dropout_key, len(keys)))
        relative = self.relate(length)
        x = dropout(self.embed(ids, token_types), self.config.dropout, keys[-1])
        for layer, key in zip(self.layers, keys):
            x = layer(x, mask, relative, key)
        return x


def pool(
    hidden: Float[Array, "batch length width"],
    mask: Bool[Array, "batch length"],
    pooling: Pooling,
) -> Float[Array, "batch width"]:
    """One float32 vector per row: the mean over its tokens, or the first token's (cls).

    A row without tokens gives the zero vector under "mean".
    """
    if pooling == "cls":
        return hidden[:, 0].astype(jnp.float32)
    weights = mask.astype(jnp.float32)[:, :, None]
    return (hidden * weights).sum(axis=1) / jnp.maximum(weights.sum(axis=1), 1.0)


def unit_rows(x: Float[Array, "batch width"]) -> Float[Array, "batch width"]:
    """Scales rows to length 1; shorter rows than 1e-12 stay next to zero (no NaN, no NaN slope)."""
    square = jnp.sum(jnp.square(x), axis=-1, keepdims=True)
    return x * jax.lax.rsqrt(jnp.maximum(square, 1e-24))


def linear(width: int, out_width: int, dtype: jnp.dtype, rngs: nnx.Rngs) -> nnx.Linear:
    """A linear layer with BERT's random weights."""
    return nnx.Linear(width, out_width, dtype=dtype, kernel_init=_INIT, rngs=rngs)


def table(rows: int, width: int, dtype: jnp.dtype, rngs: nnx.Rngs) -> nnx.Embed:
    """Vectors by number, with BERT's random weights."""
    return nnx.Embed(rows, width, dtype=dtype, embedding_init=_INIT, rngs=rngs)


def layer_norm(config: EncoderConfig, dtype: jnp.dtype, rngs: nnx.Rngs) -> nnx.LayerNorm:
    """LayerNorm whose statistics are float32, whatever `dtype` is."""
    return nnx.LayerNorm(
        config.width,
        epsilon=config.layer_norm_eps,
        dtype=dtype,
        use_fast_variance=False,  # E[x^2] - E[x]^2 loses digits that the parity with torch needs
        rngs=rngs,
    )
