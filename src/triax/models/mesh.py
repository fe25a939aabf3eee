"""The devices of a process as one mesh: rows over `data`, the weights of a decoder over `model`.

A program chooses the mesh once (`use_mesh`), since it is a matter of the machine and changes no
result; a part that is given none takes `current_mesh()` when it is first used. What has no weights
worth splitting spreads its rows over both axes, so that no device is idle.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # JAX is imported where it is needed only
    from jax.sharding import Mesh, NamedSharding

DATA, MODEL = "data", "model"


class MeshError(ValueError):
    """A mesh does not fit the devices."""


# What `use_mesh` chose: the sizes of the two axes.
_chosen: tuple[int | None, int] = (None, 1)


def open_mesh(
    data: int | None = None, model: int = 1, devices: Sequence[Any] | None = None
) -> "Mesh":
    """A mesh with the axes "data" and "model" over all of the devices.

    Neighbours share a `model` axis, so it stays inside a node as long as it divides the node.

    Args:
        data: how many shares rows are cut into; None takes what `model` leaves.
        model: how many devices share the weights of one decoder.
        devices: those of this process if None.

    Raises:
        MeshError: the two sizes do not multiply to the number of devices.
    """
    import jax
    import numpy as np
    from jax.sharding import AxisType, Mesh

    found = list(jax.local_devices() if devices is None else devices)
    asked = f"mesh.data={'null' if data is None else data} mesh.model={model}"
    if model < 1 or (data is not None and data < 1):
        raise MeshError(f"{asked}: expected 1 or more for each, or null for mesh.data")
    if len(found) % model:
        fitting = [size for size in range(1, len(found) + 1) if len(found) % size == 0]
        raise MeshError(
            f"{asked}: {len(found)} devices were found, which {model} cannot share equally; make "
            f"mesh.model one of {fitting}"
        )
    left = len(found) // model
    if data is not None and data != left:
        raise MeshError(
            f"{asked} are {data * model} devices, {len(found)} were found; leave mesh.data=null "
            f"(here {left}), ask for another number of devices, or hide some "
            "(CUDA_VISIBLE_DEVICES)"
        )
    grid = np.array(found, dtype=object).reshape(left, model)
    return Mesh(grid, (DATA, MODEL), axis_types=(AxisType.Auto, AxisType.Auto))


def use_mesh(data: int | None = None, model: int = 1) -> None:
    """Chooses the mesh of this process; call it before models are used, and once.

    Over several processes `data` counts the devices of all of them (see `current_mesh`).

    Raises:
        MeshError: it does not fit the devices. The default fits any, so these are not looked at.
    """
    global _chosen
    if (data, model) != (None, 1):
        import jax

        open_mesh(data, model, jax.devices())
    _chosen = (data, model)


def current_mesh(devices: Sequence[Any] | None = None) -> "Mesh":
    """The chosen mesh over these devices; over those of this process if None.

    Of several processes each has its own local mesh, with all that `model` leaves as `data`; the
    mesh of all processes is `current_mesh(jax.devices())`.
    """
    import jax

    data, model = _chosen
    if devices is None and jax.process_count() > 1:
        data = None
    return open_mesh(data, model, devices)


def rows_spread(mesh: "Mesh") -> "NamedSharding":
    """The first axis of an array over all devices, whose number must divide it."""
    from jax.sharding import NamedSharding, PartitionSpec

    return NamedSharding(mesh, PartitionSpec(mesh.axis_names))


def replicated(mesh: "Mesh") -> "NamedSharding":
    """The whole of an array on every device."""
    from jax.sharding import NamedSharding, PartitionSpec

    return NamedSharding(mesh, PartitionSpec())
