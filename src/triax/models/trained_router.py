"""A trained router from its adapter: questions to the probabilities that a side suffices."""

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float32

from triax.models.question_scorer import TrainedQuestionHead

PART = "router"


class TrainedRouteReader:
    """Probabilities for questions; nothing is read or fetched before the first use.

    Safe to call from several threads; one call computes at a time.
    """

    def __init__(self, adapter: str = "router", dtype: str = "float32"):
        """Takes a shipped adapter, a folder or a hub name, and the type of the computation."""
        self.name = adapter
        self._head = TrainedQuestionHead(adapter, PART, dtype=dtype)

    @property
    def folder(self) -> Path:
        """Where the adapter is."""
        return self._head.folder

    @property
    def config(self) -> dict[str, Any]:
        """config.json of the adapter; `threshold` is the one chosen on validation."""
        return self._head.config

    def read(self, questions: Sequence[str]) -> Float32[np.ndarray, "questions 2"]:
        """Probabilities that vanilla retrieval, and that the graph, suffices."""
        return np.asarray(jax.nn.sigmoid(jnp.asarray(self._head.logits(questions))))


@lru_cache(maxsize=4)
def shared_route_reader(adapter: str = "router", dtype: str = "float32") -> TrainedRouteReader:
    """One reader for all parts that ask for the same one, so that its weights are held once."""
    return TrainedRouteReader(adapter, dtype)
