"""Several processes that train one model together, as Slurm starts them or as they are told to.

Each process sees all devices of all of them once `join` has returned; it must come before anything
else that asks JAX for devices. Only the first process writes files; the others compute the same.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass

import jax
import numpy as np
from jax.experimental import multihost_utils
from jax.sharding import Mesh, NamedSharding


@dataclass(frozen=True, slots=True)
class Processes:
    """Which process this is, from 0, and how many there are.

    Args:
        index: of this process; the first one writes.
        count: of all.
        coordinator: host:port of the first process; None where Slurm knows it.
    """

    index: int = 0
    count: int = 1
    coordinator: str | None = None

    def __post_init__(self) -> None:
        if not 0 <= self.index < self.count:
            raise ValueError(
                f"process {self.index} of {self.count}, expected 0 to {self.count - 1}; give each "
                "process its own index"
            )

    @property
    def is_first(self) -> bool:
        """Whether this is the process that writes."""
        return self.index == 0


def processes(
    coordinator: str | None = None,
    count: int | None = None,
    index: int | None = None,
    environment: Mapping[str, str] | None = None,
) -> Processes:
    """The processes that are given, or else those of an `srun` step of several tasks.

    Without either this one is alone. A batch script itself has the number of tasks in its
    environment as well, but no step: it is alone too.

    Args:
        coordinator: host:port where the first process listens; needs `count` and `index`.
        count: of the processes.
        index: of this one.
        environment: os.environ where None.

    Raises:
        ValueError: some but not all of the three are given.
    """
    given = (coordinator, count, index)
    if any(one is not None for one in given):
        if coordinator is None or count is None or index is None:
            raise ValueError(
                f"coordinator={coordinator}, count={count}, index={index}: give all three, or none "
                "of them where srun starts the processes"
            )
        return Processes(index, count, coordinator)
    environment = os.environ if environment is None else environment
    count = int(environment.get("SLURM_STEP_NUM_TASKS") or environment.get("SLURM_NTASKS") or 1)
    if count > 1 and "SLURM_STEP_NODELIST" in environment:
        return Processes(int(environment["SLURM_PROCID"]), count)
    return Processes()


def join(found: Processes) -> None:
    """Connects this process with the others; returns once all are there. Nothing for one alone.

    Under Slurm the first node of the step is the coordinator, whose name all nodes must be able to
    resolve; each process takes the GPU of its place on the node, so the step needs
    `--gpus-per-node`, never `--gpus-per-task`, which would hide the others (jax issue 28194).
    """
    if found.count == 1:
        return
    if found.coordinator is None:
        jax.distributed.initialize()
    else:
        jax.distributed.initialize(found.coordinator, found.count, found.index)


def any_process(flag: bool) -> bool:
    """Whether the flag is set in any process; all of them have to ask."""
    if jax.process_count() == 1:
        return flag
    return bool(np.any(multihost_utils.process_allgather(np.array(flag))))


def of_first(figures: Mapping[str, float]) -> dict[str, float]:
    """The figures as the first process has them, so that all decide alike; all have to ask."""
    if jax.process_count() == 1:
        return dict(figures)
    names = sorted(figures)
    # As bits: JAX would make float64 to float32.
    own = np.array([figures[name] for name in names], np.float64).view(np.uint32)
    first = np.ascontiguousarray(multihost_utils.broadcast_one_to_all(own), np.uint32)
    return dict(zip(names, first.view(np.float64).tolist()))


def meet(name: str) -> None:
    """Returns once all processes are here."""
    if jax.process_count() > 1:
        multihost_utils.sync_global_devices(name)


def own_part(tree: object, mesh: Mesh) -> object:
    """A tree of arrays on a mesh of all processes, as arrays on this one's devices; no copy.

    Every array must be whole on the devices of each process, as replicated ones are.
    """
    if jax.process_count() == 1:
        return tree

    def own(leaf: jax.Array) -> jax.Array:
        sharding = NamedSharding(mesh.local_mesh, leaf.sharding.spec)  # type: ignore[attr-defined]
        parts = [part.data for part in leaf.addressable_shards]
        return jax.make_array_from_single_device_arrays(leaf.shape, sharding, parts)

    return jax.tree.map(own, tree)
