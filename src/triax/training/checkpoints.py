"""Checkpoints of a training run: the newest is taken up, a torn one never seen (orbax)."""

from pathlib import Path
from types import TracebackType
from typing import Any

import jax
import numpy as np
import orbax.checkpoint as ocp


def _numbered(tree: Any) -> dict[str, Any]:
    """The leaves by number: a file that does not depend on how flax or optax name their nodes."""
    return {f"{number:05d}": leaf for number, leaf in enumerate(jax.tree.leaves(tree))}


class Checkpoints:
    """The checkpoints below one folder; the newest `keep` are kept.

    A checkpoint is written beside and then renamed, so a killed run leaves the one before whole.
    """

    def __init__(self, folder: Path, keep: int = 2):
        options = ocp.CheckpointManagerOptions(max_to_keep=keep, enable_async_checkpointing=False)
        self._manager = ocp.CheckpointManager(folder.resolve(), options=options)

    @property
    def latest(self) -> int | None:
        """The number of steps that the newest checkpoint has behind it."""
        return self._manager.latest_step()

    def save(self, step: int, tree: Any) -> None:
        """Writes a tree of arrays and numbers; nothing if this step is there already."""
        if step != self.latest:
            self._manager.save(step, args=ocp.args.StandardSave(_numbered(tree)))

    def restore(self, like: Any) -> Any:
        """Reads the newest; `like` gives shapes, types and where each array is to be placed.

        Raises:
            ValueError: the checkpoint is of another model.
        """
        # orbax writes a numpy number, but has to be asked for it as an array without dimensions.
        wanted = {
            name: np.asarray(leaf) if isinstance(leaf, np.generic) else leaf
            for name, leaf in _numbered(like).items()
        }
        shapes = jax.tree.map(ocp.utils.to_shape_dtype_struct, wanted)
        found = self._manager.restore(self.latest, args=ocp.args.StandardRestore(shapes))
        leaves = [
            found[name][()] if isinstance(leaf, np.generic) else found[name]
            for name, leaf in _numbered(like).items()
        ]
        return jax.tree.unflatten(jax.tree.structure(like), leaves)

    def __enter__(self) -> "Checkpoints":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._manager.close()
