"""What the loop asks of a task: a model, batches, a loss, a validation."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from flax import nnx
from jaxtyping import Array, Float, Key


class Loss(NamedTuple):
    """Sums over the rows of a batch.

    The loop minimises total / weight over all micro-batches and devices of a step, so neither
    accumulation nor sharding changes the result. `metrics` are further sums for the log, and are
    divided by the weight too.
    """

    total: Float[Array, ""]
    weight: Float[Array, ""]
    metrics: dict[str, Float[Array, ""]]


@runtime_checkable
class Task(Protocol):
    """One thing to be learnt. `objective` names the figure of `validate` that is maximised."""

    name: str
    objective: str
    trainable: Any

    def build(self, seed: int) -> nnx.Module:
        """The model at the start: frozen base weights, and fresh trainable ones from the seed."""
        ...

    def batch(self, step: int, seed: int) -> Mapping[str, np.ndarray]:
        """The rows of a step; a pure function of both numbers, axis 0 of every array is rows."""
        ...

    def loss(self, model: nnx.Module, batch: Mapping[str, Array], key: Key[Array, ""]) -> Loss:
        """Traced by jit; `key` is for whatever is random in the step."""
        ...

    def validate(self, model: nnx.Module) -> dict[str, float]:
        """Figures on held-out data."""
        ...

    def save(self, model: nnx.Module, folder: Path) -> None:
        """Writes the weights in the form in which they are used and shipped."""
        ...

    def describe(self) -> dict[str, Any]:
        """Data sets, licences and counts, for the model card."""
        ...
