"""One step of training: pure, compiled once a shape, rows spread over a mesh."""

from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from jaxtyping import Array, Key

from triax.models.decoder import Decoder
from triax.models.decoder_sharding import state_shardings
from triax.models.mesh import DATA, current_mesh, replicated
from triax.training.task import Task

Metrics = dict[str, Array]


def data_mesh(devices: list[Any] | None = None) -> Mesh:
    """The chosen mesh (`triax.models.mesh`) over all devices of all processes, or over these.

    Each of its `data` shares computes its rows of a batch.
    """
    return current_mesh(jax.devices() if devices is None else devices)


def make_step(
    task: Task,
    graph: Any,
    optimizer: optax.GradientTransformation,
    accumulate: int,
) -> Callable[..., tuple[Any, Any, Metrics]]:
    """The function (trainable, moments, frozen, batch, key) -> (trainable, moments, metrics).

    The batch is cut into `accumulate` micro-batches along its rows (each takes every n-th row, so
    that all devices have work in each), whose sums are added before one update.
    """

    def total(trainable: Any, frozen: Any, batch: Mapping[str, Array], key: Key[Array, ""]):
        loss = task.loss(nnx.merge(graph, trainable, frozen), batch, key)
        return loss.total, (loss.weight, loss.metrics)

    grad = jax.value_and_grad(total, has_aux=True)

    def sums(trainable: Any, frozen: Any, batch: Mapping[str, Array], key: Key[Array, ""]):
        if accumulate == 1:
            return grad(trainable, frozen, batch, key)
        for name, value in batch.items():
            if value.shape[0] % accumulate:
                raise ValueError(
                    f"batch array {name!r} has {value.shape[0]} rows, which {accumulate} "
                    "micro-batches cannot share equally; make rows_multiple devices x accumulate"
                )
        parts = jax.tree.map(
            lambda x: x.reshape(x.shape[0] // accumulate, accumulate, *x.shape[1:]).swapaxes(0, 1),
            dict(batch),
        )

        def add(held: Any, part: Any) -> tuple[Any, None]:
            found = grad(trainable, frozen, part[0], part[1])
            return jax.tree.map(jnp.add, held, found), None

        shapes = jax.eval_shape(grad, trainable, frozen, jax.tree.map(lambda x: x[0], parts), key)
        zeros = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), shapes)
        return jax.lax.scan(add, zeros, (parts, jax.random.split(key, accumulate)))[0]

    def step(
        trainable: Any, moments: Any, frozen: Any, batch: Mapping[str, Array], key: Key[Array, ""]
    ) -> tuple[Any, Any, Metrics]:
        (loss, (weight, metrics)), grads = sums(trainable, frozen, batch, key)
        weight = jnp.maximum(weight, 1e-9)
        grads = jax.tree.map(lambda g: g / weight, grads)
        updates, moments = optimizer.update(grads, moments, trainable)
        shown = {name: value / weight for name, value in metrics.items()}
        shown |= {"loss": loss / weight, "grad_norm": optax.global_norm(grads)}
        return optax.apply_updates(trainable, updates), moments, shown

    return jax.jit(step, donate_argnums=(0, 1))


def place_batch(batch: Mapping[str, np.ndarray], mesh: Mesh) -> dict[str, Array]:
    """Puts the rows of a batch on the devices of the mesh, cut into its `data` shares.

    Raises:
        ValueError: the rows are no multiple of the shares.
    """
    devices = mesh.shape[DATA]
    for name, value in batch.items():
        if value.shape[0] % devices:
            raise ValueError(
                f"batch array {name!r} has {value.shape[0]} rows, which {devices} devices cannot "
                "share equally; make batch_tokens / width a multiple"
            )
    sharding = NamedSharding(mesh, PartitionSpec(DATA))
    return {name: _placed(value, sharding) for name, value in batch.items()}


def replicate(tree: Any, mesh: Mesh) -> Any:
    """Puts the same values on every device of the mesh."""
    return jax.tree.map(lambda leaf: _placed(leaf, replicated(mesh)), tree)


def place_weights(tree: Any, model: nnx.Module, mesh: Mesh) -> Any:
    """Puts weights of a model, or what repeats their names, on the devices of the mesh.

    Those of a decoder are split over its `model` axis; any other model lies whole on each device.
    """
    if not isinstance(model, Decoder):
        return replicate(tree, mesh)
    return jax.tree.map(_placed, tree, state_shardings(tree, model.config, mesh))


def _placed(value: Any, sharding: NamedSharding) -> Array:
    if sharding.is_fully_addressable:
        return jax.device_put(value, sharding)
    # Every process has the whole value and gives its devices their part of it.
    whole = np.asarray(value)
    return jax.make_array_from_callback(whole.shape, sharding, lambda part: whole[part])
