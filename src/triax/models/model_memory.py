"""Bytes that a model needs on each device, from its configuration alone: no weight is read."""

import math
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
from flax import nnx
from jax.sharding import AbstractMesh, Mesh

from triax.models.adapters import DECODER_LAYERS, add_lora
from triax.models.deberta import DebertaConfig, DebertaEncoder
from triax.models.decoder import Decoder, DecoderConfig, init_cache
from triax.models.decoder_params import abstract_decoder
from triax.models.decoder_sharding import cache_sharding, row_sharding, state_shardings
from triax.models.encoder import EncoderConfig, TransformerEncoder
from triax.models.memory import Memory
from triax.models.mesh import MODEL

AnyMesh = Mesh | AbstractMesh


def planned_mesh(data: int, model: int = 1) -> AbstractMesh:
    """A mesh of devices that need not be there, to plan for another machine."""
    return AbstractMesh((data, model), ("data", MODEL))


def tree_bytes(tree: Any, shardings: Any = None, layers: int = 1) -> int:
    """Bytes of arrays or shapes; with a tree of shardings those on one device.

    What has `layers` on its path counts so many times: one layer may stand for all.
    """

    def share(path: tuple[Any, ...], leaf: Any, *sharding: Any) -> int:
        shape = sharding[0].shard_shape(leaf.shape) if sharding else leaf.shape
        times = layers if any(getattr(key, "key", None) == "layers" for key in path) else 1
        return times * math.prod(shape) * leaf.dtype.itemsize

    places = () if shardings is None else (shardings,)
    return sum(jax.tree.leaves(jax.tree_util.tree_map_with_path(share, tree, *places)))


def generation_memory(
    config: DecoderConfig,
    dtype: Any,
    mesh: AnyMesh,
    batch: int,
    slots: int,
    piece: int = 64,
    prefixes: int = 0,
) -> Memory:
    """Of a decoder that writes.

    Args:
        config: of the decoder.
        dtype: of weights, computation and cache.
        mesh: over which weights and rows are split.
        batch: rows that run together (see `generate.batch_bucket`).
        slots: of the cache (see `generate.slots_bucket`).
        piece: tokens of each row that are read at once.
        prefixes: shared beginnings that are kept.
    """
    # All layers have the same shapes, and to trace one of them takes a moment.
    weights = nnx.state(abstract_decoder(replace(config, num_layers=1), dtype))
    one_layer = jax.eval_shape(lambda: init_cache(replace(config, num_layers=1), 1, slots, dtype))
    kept = tree_bytes(one_layer, _cache_places(one_layer, config, mesh, 1)) * config.num_layers
    one_layer = jax.eval_shape(
        lambda: init_cache(replace(config, num_layers=1), batch, slots, dtype)
    )
    cache = tree_bytes(one_layer, _cache_places(one_layer, config, mesh, batch))
    rows, size = row_sharding(mesh, batch).shard_shape((batch,))[0], mesh.shape.get(MODEL, 1)
    layer = _layer_bytes(config, jnp.dtype(dtype).itemsize, rows * piece, size)
    # Scores, their exponentials and their shares.
    scores = 3 * 4 * rows * piece * slots * (config.num_heads // size)
    # A layer's keys and values as the product wants them; logits with and without the noise.
    turned = cache * max(1, 4 // jnp.dtype(dtype).itemsize)
    logits = 3 * 4 * rows * config.vocab_size
    return Memory(
        {
            "weights": tree_bytes(
                weights, state_shardings(weights, config, mesh), config.num_layers
            ),
            "cache": cache * config.num_layers,
        },
        {
            "activations": max(layer + scores, logits) + turned,
            **({"beginnings": kept * prefixes} if prefixes else {}),
        },
    )


def _cache_places(cache: Any, config: DecoderConfig, mesh: AnyMesh, batch: int) -> Any:
    return jax.tree.map(lambda _: cache_sharding(config, mesh, batch), cache)


def training_memory(
    trainable: Any,
    moments: Any,
    frozen: Any,
    model: nnx.Module,
    mesh: AnyMesh,
    activations: int = 0,
    layers: int = 1,
) -> Memory:
    """Of a training: what `training.loop.fit` holds.

    Args:
        trainable: the trained state, arrays or shapes.
        moments: of the optimizer (`jax.eval_shape(optimizer.init, trainable)`).
        frozen: the rest of the state.
        model: whose state it is; that of a `Decoder` is split over the `model` axis.
        mesh: over which it is split.
        activations: a bound on what a step holds beside these, if one is known.
        layers: how many layers each one in the state stands for.
    """

    def held(tree: Any) -> int:
        places = state_shardings(tree, model.config, mesh) if isinstance(model, Decoder) else None
        return tree_bytes(tree, places, layers)

    exact = {
        "frozen weights": held(frozen),
        "trained weights": held(trainable),
        "gradients": held(trainable),
        "moments": held(moments),
        "best weights": held(trainable),
    }
    rough = {"activations": activations} if activations else {}
    return Memory({name: size for name, size in exact.items() if size}, rough)


def adapter_training_memory(
    config: DecoderConfig,
    dtype: Any,
    mesh: AnyMesh,
    optimizer: Any,
    rank: int,
    rows: int,
    width: int,
    slots: int | None = None,
    remat: bool = False,
) -> Memory:
    """Of the training of low-rank adapters (`tasks.write`), from the configuration alone.

    Args:
        config: of the decoder.
        dtype: of its frozen weights and of the computation.
        mesh: over which it is split.
        optimizer: the transformation of the gradients.
        rank: of the adapters.
        rows: of a micro-batch, on all devices together.
        width: tokens of a row.
        slots: places of a row where logits are made; `width` if None.
        remat: whether layers are computed again for the gradient.
    """

    def build() -> Decoder:
        decoder = Decoder(replace(config, num_layers=1), dtype=dtype, rngs=nnx.Rngs(0))
        add_lora(decoder, rank, nnx.Rngs(0), DECODER_LAYERS)
        return decoder

    model = nnx.eval_shape(build)
    _, trainable, frozen = nnx.split(model, nnx.LoRAParam, ...)
    moments = jax.eval_shape(optimizer.init, trainable)
    own = row_sharding(mesh, rows).shard_shape((rows,))[0]
    size = decoder_activations(config, dtype, own, width, slots, mesh.shape.get(MODEL, 1), remat)
    return training_memory(trainable, moments, frozen, model, mesh, size, layers=config.num_layers)


def decoder_activations(
    config: DecoderConfig,
    dtype: Any,
    rows: int,
    width: int,
    slots: int | None = None,
    model: int = 1,
    remat: bool = False,
) -> int:
    """A bound on what the gradient of `rows` x `width` tokens keeps on one device.

    On a CPU XLA orders its work by speed, and `remat` saves almost nothing (3% of three layers, by
    its own account): ask for the bound without it there.

    Args:
        config: of the decoder.
        dtype: of the computation.
        rows: on the device.
        width: tokens of a row.
        slots: places of a row where logits are made; `width` if None.
        model: devices that share the weights.
        remat: whether layers are computed again for the gradient.
    """
    item = jnp.dtype(dtype).itemsize
    # Each layer's inner results; scores before and after the softmax, and their slope.
    layer = _layer_bytes(config, item, rows * width, model)
    layer += 3 * 4 * rows * width * width * (config.num_heads // model)
    inputs = rows * width * config.hidden_size * item
    layers = config.num_layers * (inputs if remat else layer) + 2 * layer
    logits = 4 * 4 * rows * (width if slots is None else slots) * config.vocab_size // model
    return layers + logits


def encoder_memory(config: EncoderConfig, dtype: Any, batch_tokens: int, length: int) -> Memory:
    """Of an encoder that embeds; each device holds all its weights, which are float32.

    Args:
        config: of the encoder.
        dtype: of the computation.
        batch_tokens: rows x length on a device.
        length: the longest row in tokens.
    """
    kind = DebertaEncoder if isinstance(config, DebertaConfig) else TransformerEncoder
    model = nnx.eval_shape(lambda: kind(config, jnp.dtype(dtype), rngs=nnx.Rngs(0)))
    tokens, item = max(batch_tokens, length), jnp.dtype(dtype).itemsize
    layer = tokens * item * (8 * config.width + 3 * config.inner_width)
    scores = 3 * 4 * tokens * length * config.num_heads
    return Memory({"weights": tree_bytes(nnx.state(model))}, {"activations": layer + scores})


def _layer_bytes(config: DecoderConfig, item: int, tokens: int, model: int) -> int:
    """Inner results of one layer: the stream, queries, keys, values, and the feed-forward part.

    Norms and rotations are computed in float32.
    """
    heads = (config.num_heads + 2 * config.num_kv_heads) * config.head_dim // model
    stream = config.hidden_size * (4 * item + 2 * 4)
    return tokens * (stream + heads * (item + 2 * 4) + 4 * config.intermediate_size * item // model)
