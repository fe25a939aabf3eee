"""A question becomes query triplets: an encoder, and a small decoder that may copy from it.

The decoder is a pre-norm transformer (Vaswani et al. 2017, section 3) with cross-attention. At
each step one softmax goes over a small vocabulary and the places of the question together
(CopyNet, Gu et al. 2016, section 3.2, eq. 4): the two ways to write a word share one scale, so no
separate gate is needed.
"""

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
from flax import nnx
from jaxtyping import Array, Bool, Float, Int

from triax.models.encoder import TransformerEncoder

_INIT = nnx.initializers.normal(0.02)
_NEVER = -1e9
# What training changes: the adapters in the encoder, and all of the decoder.
TRAINABLE = nnx.Any(nnx.LoRAParam, nnx.All(nnx.Param, nnx.Not(nnx.PathContains("encoder"))))


@dataclass(frozen=True, slots=True)
class WriterConfig:
    """The shape of a decoder; `max_outputs` bounds what it can write."""

    vocab_size: int
    width: int = 256
    num_layers: int = 2
    num_heads: int = 4
    inner_width: int = 768
    max_outputs: int = 128

    def __post_init__(self) -> None:
        if self.width % self.num_heads:
            raise ValueError(
                f"width {self.width} is not a multiple of the {self.num_heads} attention heads"
            )


class Memory(NamedTuple):
    """What the decoder needs of a question, computed once.

    `keys` and `values` are those of cross-attention, one a layer.
    """

    copy_inputs: Float[Array, "batch places width"]
    copy_keys: Float[Array, "batch places width"]
    mask: Bool[Array, "batch places"]
    copyable: Bool[Array, "batch places"]
    keys: tuple[Float[Array, "batch places heads part"], ...]
    values: tuple[Float[Array, "batch places heads part"], ...]


class Cache(NamedTuple):
    """Keys and values of the outputs so far, [layers, batch, outputs, heads, part]."""

    keys: Float[Array, "layers batch outputs heads part"]
    values: Float[Array, "layers batch outputs heads part"]


class WriterLayer(nnx.Module):
    """Self-attention over the outputs, attention to the question, a GELU network; pre-norm."""

    def __init__(self, config: WriterConfig, source_width: int, *, rngs: nnx.Rngs):
        """Random weights, N(0, 0.02)."""
        width, inner = config.width, config.inner_width
        self.num_heads = config.num_heads
        self.self_norm = nnx.LayerNorm(width, rngs=rngs)
        self.self_query = _linear(width, width, rngs)
        self.self_key = _linear(width, width, rngs)
        self.self_value = _linear(width, width, rngs)
        self.self_output = _linear(width, width, rngs)
        self.cross_norm = nnx.LayerNorm(width, rngs=rngs)
        self.cross_query = _linear(width, width, rngs)
        self.cross_key = _linear(source_width, width, rngs)
        self.cross_value = _linear(source_width, width, rngs)
        self.cross_output = _linear(width, width, rngs)
        self.inner_norm = nnx.LayerNorm(width, rngs=rngs)
        self.inner = _linear(width, inner, rngs)
        self.inner_output = _linear(inner, width, rngs)

    def split(self, x: Float[Array, "batch length width"]) -> Float[Array, "batch length h p"]:
        """Cuts the width into heads."""
        return x.reshape(*x.shape[:2], self.num_heads, x.shape[2] // self.num_heads)

    def project_self(
        self, x: Float[Array, "batch length width"]
    ) -> tuple[Float[Array, "b l h p"], Float[Array, "b l h p"], Float[Array, "b l h p"]]:
        """Query, key and value of each output."""
        normed = self.self_norm(x)
        return (
            self.split(self.self_query(normed)),
            self.split(self.self_key(normed)),
            self.split(self.self_value(normed)),
        )

    def finish(
        self,
        x: Float[Array, "batch length width"],
        attended: Float[Array, "batch length width"],
        memory_key: Float[Array, "batch places heads part"],
        memory_value: Float[Array, "batch places heads part"],
        memory_mask: Bool[Array, "batch places"],
    ) -> Float[Array, "batch length width"]:
        """All that comes after the scores of self-attention."""
        x = x + self.self_output(attended)
        query = self.split(self.cross_query(self.cross_norm(x)))
        x = x + self.cross_output(attend(query, memory_key, memory_value, memory_mask[:, None]))
        hidden = jax.nn.gelu(self.inner(self.inner_norm(x)), approximate=True)
        return x + self.inner_output(hidden)


class QueryWriter(nnx.Module):
    """Question pieces and the outputs so far to scores of the next output.

    An output is a number: below `vocab_size` a token, from there on the copy of a place.
    """

    def __init__(self, config: WriterConfig, encoder: TransformerEncoder, *, rngs: nnx.Rngs):
        """The given encoder, and a decoder with random weights."""
        self.config = config
        self.encoder = encoder
        source_width, width = encoder.config.width, config.width
        self.tokens = nnx.Embed(config.vocab_size, width, embedding_init=_INIT, rngs=rngs)
        self.positions = nnx.Embed(config.max_outputs, width, embedding_init=_INIT, rngs=rngs)
        self.copy_input = _linear(source_width, width, rngs)
        self.copy_key = _linear(source_width, width, rngs)
        self.copy_query = _linear(width, width, rngs)
        self.layers = nnx.List(
            WriterLayer(config, source_width, rngs=rngs) for _ in range(config.num_layers)
        )
        self.norm = nnx.LayerNorm(width, rngs=rngs)
        self.vocab_bias = nnx.Param(jnp.zeros((config.vocab_size,)))
        # Names are copied piece after piece: the place after the last copy has a head start that
        # is learnt. Without it the order within a name must be found from the contents alone.
        self.follow_bias = nnx.Param(jnp.ones((1,)))

    def read(
        self,
        ids: Int[Array, "batch places"],
        mask: Bool[Array, "batch places"],
        copyable: Bool[Array, "batch places"],
    ) -> Memory:
        """Encodes questions."""
        hidden = self.encoder(ids, mask)
        return Memory(
            self.copy_input(hidden),
            self.copy_key(hidden),
            mask,
            copyable,
            tuple(layer.split(layer.cross_key(hidden)) for layer in self.layers),
            tuple(layer.split(layer.cross_value(hidden)) for layer in self.layers),
        )

    def embed(
        self, memory: Memory, outputs: Int[Array, "batch length"], positions: Int[Array, " length"]
    ) -> Float[Array, "batch length width"]:
        """Vectors of outputs: a token's own, or what the encoder says of the copied place."""
        size = self.config.vocab_size
        is_copy = outputs >= size
        place = jnp.where(is_copy, outputs - size, 0)
        copied = jnp.take_along_axis(memory.copy_inputs, place[:, :, None], axis=1)
        own = self.tokens(jnp.where(is_copy, 0, outputs))
        return jnp.where(is_copy[:, :, None], copied, own) + self.positions(positions)[None]

    def score(
        self,
        memory: Memory,
        x: Float[Array, "batch length width"],
        outputs: Int[Array, "batch length"],
    ) -> Float[Array, "batch length choices"]:
        """Logits over vocabulary and places; `outputs` are those that `x` was computed from."""
        size = self.config.vocab_size
        hidden = self.norm(x)
        vocab = self.tokens.attend(hidden) + self.vocab_bias
        scale = self.config.width**-0.5
        copy = jnp.einsum("blw,bpw->blp", self.copy_query(hidden), memory.copy_keys) * scale
        places = jnp.arange(memory.mask.shape[1])
        follows = (outputs >= size)[:, :, None] & (
            places[None, None] == (outputs - size + 1)[:, :, None]
        )
        copy = copy + follows * self.follow_bias
        copy = jnp.where(memory.copyable[:, None], copy, _NEVER)
        return jnp.concatenate([vocab, copy], axis=-1)

    def __call__(
        self, memory: Memory, outputs: Int[Array, "batch length"]
    ) -> Float[Array, "batch length choices"]:
        """Logits of the output after each given one (teacher forcing)."""
        length = outputs.shape[1]
        causal = jnp.tril(jnp.ones((length, length), bool))[None]
        x = self.embed(memory, outputs, jnp.arange(length))
        for layer, key, value in zip(self.layers, memory.keys, memory.values):
            query, own_key, own_value = layer.project_self(x)
            x = layer.finish(x, attend(query, own_key, own_value, causal), key, value, memory.mask)
        return self.score(memory, x, outputs)

    def empty_cache(self, batch: int, length: int) -> Cache:
        """Room for `length` outputs of each row."""
        config = self.config
        part = config.width // config.num_heads
        zeros = jnp.zeros((config.num_layers, batch, length, config.num_heads, part))
        return Cache(zeros, zeros)

    def step(
        self,
        memory: Memory,
        cache: Cache,
        last: Int[Array, " batch"],
        position: Int[Array, ""],
    ) -> tuple[Float[Array, "batch choices"], Cache]:
        """Logits of the next output, given the last one, and the cache with it."""
        x = self.embed(memory, last[:, None], position[None])
        seen = (jnp.arange(cache.keys.shape[2]) <= position)[None, None]
        keys, values = cache
        for n, layer in enumerate(self.layers):
            query, key, value = layer.project_self(x)
            keys = jax.lax.dynamic_update_slice(keys, key[None], (n, 0, position, 0, 0))
            values = jax.lax.dynamic_update_slice(values, value[None], (n, 0, position, 0, 0))
            attended = attend(query, keys[n], values[n], seen)
            x = layer.finish(x, attended, memory.keys[n], memory.values[n], memory.mask)
        return self.score(memory, x, last[:, None])[:, 0], Cache(keys, values)


def attend(
    query: Float[Array, "batch length heads part"],
    key: Float[Array, "batch places heads part"],
    value: Float[Array, "batch places heads part"],
    mask: Bool[Array, "#batch #length places"],
) -> Float[Array, "batch length width"]:
    """Scaled dot-product attention; `mask` is True where an output may look."""
    scores = jnp.einsum("bqhp,bkhp->bhqk", query, key) * query.shape[-1] ** -0.5
    scores = jnp.where(mask[:, None], scores, _NEVER)
    mixed = jnp.einsum("bhqk,bkhp->bqhp", jax.nn.softmax(scores, axis=-1), value)
    return mixed.reshape(*query.shape[:2], -1)


def choice_log_likelihood(
    logits: Float[Array, "batch length choices"],
    tokens: Int[Array, "batch length"],
    places: Bool[Array, "batch length places"],
) -> Float[Array, "batch length"]:
    """Log of the summed probability of all right ways to write each output.

    Args:
        logits: over vocabulary and places.
        tokens: the right token, -1 where the vocabulary lacks it.
        places: the right places to copy from; none where it is not to be copied.
    """
    size = logits.shape[-1] - places.shape[-1]
    log_p = jax.nn.log_softmax(logits, axis=-1)
    by_token = jnp.take_along_axis(log_p[..., :size], jnp.maximum(tokens, 0)[..., None], axis=-1)
    ways = jnp.concatenate(
        [
            jnp.where((tokens >= 0)[..., None], by_token, _NEVER),
            jnp.where(places, log_p[..., size:], _NEVER),
        ],
        axis=-1,
    )
    return jax.nn.logsumexp(ways, axis=-1)


def _linear(width: int, out_width: int, rngs: nnx.Rngs) -> nnx.Linear:
    return nnx.Linear(width, out_width, kernel_init=_INIT, rngs=rngs)
