"""A trained classifier from its adapter: questions to the probabilities of their types."""

from collections.abc import Sequence
from functools import lru_cache

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float32

from triax.models.adapters import AdapterError
from triax.models.question_scorer import TrainedQuestionHead
from triax.records.question_types import QUESTION_TYPES

PART = "question_type"


class TrainedTypeReader:
    """Probabilities for questions; nothing is read or fetched before the first use.

    Safe to call from several threads; one call computes at a time.
    """

    def __init__(self, adapter: str = "question_type", dtype: str = "float32"):
        """Takes a shipped adapter, a folder or a hub name, and the type of the computation."""
        self.name = adapter
        self._head = TrainedQuestionHead(adapter, PART, len(QUESTION_TYPES), dtype)

    def read(self, questions: Sequence[str]) -> Float32[np.ndarray, "questions types"]:
        """Probabilities that sum to 1, in the order of `QUESTION_TYPES`.

        Raises:
            AdapterError: it was trained to other types.
        """
        if (kinds := self._head.config.get("kinds")) != list(QUESTION_TYPES):
            raise AdapterError(
                f"{self._head.folder} was trained to the types {kinds}, expected "
                f"{list(QUESTION_TYPES)}; train it again with train/question_type.py"
            )
        return np.asarray(jax.nn.softmax(jnp.asarray(self._head.logits(questions)), axis=-1))


@lru_cache(maxsize=4)
def shared_type_reader(adapter: str = "question_type", dtype: str = "float32") -> TrainedTypeReader:
    """One reader for all parts that ask for the same one, so that its weights are held once."""
    return TrainedTypeReader(adapter, dtype)
