"""What a step will hold on each device, told before it runs: an estimate, a log line, a warning."""

import logging
import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # JAX is imported where it is needed only
    from jax.sharding import Mesh

_log = logging.getLogger(__name__)
_EDGE_BYTES = 10  # a place and a weight, and a quarter of padding
_PAGERANK_ARRAYS = 6  # of nodes x questions: three of the iteration, the reset, two on the way


class DeviceMemoryError(RuntimeError):
    """What must be held is more than a device has."""


@dataclass(frozen=True, slots=True)
class Memory:
    """Bytes on one device, by what they are for.

    `exact` is what is surely held at once, such as weights; `rough` is a bound on the rest.
    """

    exact: dict[str, int]
    rough: dict[str, int] = field(default_factory=dict)

    @property
    def total(self) -> int:
        """All of it."""
        return sum(self.exact.values()) + sum(self.rough.values())

    def __str__(self) -> str:
        parts = [f"{name} {amount(size)}" for name, size in self.exact.items()]
        parts += [f"{name} up to {amount(size)}" for name, size in self.rough.items()]
        return f"{amount(self.total)} ({', '.join(parts)})"


def amount(size: float | int) -> str:
    """Bytes for people: 512 B, 1.5 MB, 14.2 GB (powers of 1,024)."""
    for unit in ("B", "KB", "MB"):
        if size < 1024:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} GB"


def index_memory(
    shape: tuple[int, int], dtype: Any, devices: int, tile: int, groups: int, queries: int = 8
) -> Memory:
    """Of a flat search: its vectors [rows, dimension] spread over devices, and one call.

    Args:
        shape: of all vectors, padding included.
        dtype: of the vectors.
        devices: that share them.
        tile: rows scored at once on a device.
        groups: that are searched for in one call.
        queries: in a group.
    """
    import numpy as np

    vectors = shape[0] // devices * shape[1] * np.dtype(dtype).itemsize
    # A tile and its scores in float32, and the copy that the best are sorted in.
    call = 4 * tile * (shape[1] + groups * queries + 2 * groups)
    return Memory({"vectors": vectors}, {"scores of a call": call})


def graph_memory(edges: int, nodes: int, questions: int) -> Memory:
    """Of PageRank on a device, which holds the whole graph.

    Args:
        edges: each direction counts.
        nodes: of the graph.
        questions: at once on a device.
    """
    return Memory(
        {},
        {
            "edges": _EDGE_BYTES * edges + 8 * nodes,
            "questions": _PAGERANK_ARRAYS * 4 * nodes * questions,
        },
    )


def device_memory(device: Any) -> int | None:
    """Bytes that this process may use on a device; None where nothing tells it.

    Devices of a CPU share the memory of the machine.
    """
    stats = device.memory_stats() or {}
    if "bytes_limit" in stats:
        return int(stats["bytes_limit"])
    if device.platform != "cpu":
        return None
    import jax

    try:
        whole = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError):
        return None
    return whole // jax.local_device_count("cpu")


def report(what: str, memory: Memory, mesh: "Mesh") -> None:
    """Logs what a step will hold on each device of the mesh, and warns where that is too much.

    Raises:
        DeviceMemoryError: what is surely held does not fit an accelerator. (A CPU may swap.)
    """
    device = mesh.local_devices[0]
    limit = device_memory(device)
    told = "" if limit is None else f" of {amount(limit)}"
    _log.info("%s: %s%s on each of %d device(s)", what, memory, told, mesh.size)
    if limit is None or memory.total <= limit:
        return
    advice = (
        "take smaller batches, bfloat16, more devices (mesh.data for rows, mesh.model for the "
        "weights of a decoder), or give JAX more of the device (XLA_PYTHON_CLIENT_MEM_FRACTION)"
    )
    surely = sum(memory.exact.values())
    if surely > limit and device.platform != "cpu":
        raise DeviceMemoryError(
            f"{what} must hold {amount(surely)} on each device, which has {amount(limit)}; {advice}"
        )
    _log.warning("%s may need more memory than a device has; if it fails, %s", what, advice)
