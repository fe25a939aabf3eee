"""One step of training: pure, compiled once a shape, rows spread over a mesh."""

from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec
from jaxtyping import Array, Key

from triax.training.task import Task

Metrics = dict[str, Array]
ROWS = "rows"


def data_mesh(devices: list[Any] | None = None) -> Mesh:
    """All devices in a row; each computes its share of a batch (data parallelism)."""
    found = np.array(jax.devices() if devices is None else devices)
    return Mesh(found, (ROWS,), axis_types=(AxisType.Auto,))


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
    """Puts the rows of a batch on the devices of the mesh, an equal share on each.

    Raises:
        ValueError: the rows are no multiple of the devices.
    """
    devices = mesh.devices.size
    for name, value in batch.items():
        if value.shape[0] % devices:
            raise ValueError(
                f"batch array {name!r} has {value.shape[0]} rows, which {devices} devices cannot "
                "share equally; make batch_tokens / width a multiple"
            )
    return jax.device_put(dict(batch), NamedSharding(mesh, PartitionSpec(ROWS)))


def replicate(tree: Any, mesh: Mesh) -> Any:
    """Puts the same values on every device of the mesh."""
    return jax.device_put(tree, NamedSharding(mesh, PartitionSpec()))
