"""The trained classifier of question types: the most probable one, with its probability."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from triax.records.question_types import QUESTION_TYPES, TypeDecision
from triax.records.questions import Question


@runtime_checkable
class TypeReader(Protocol):
    """Gives the probabilities of `QUESTION_TYPES`, in their order, for each question."""

    def read(self, questions: Sequence[str]) -> Any: ...


@dataclass(frozen=True, slots=True)
class TrainedTypes:
    """Reads all questions in batches; of equally probable types the first of `QUESTION_TYPES`."""

    reader: TypeReader

    async def classify(self, questions: Sequence[Question]) -> list[TypeDecision]:
        """One decision a question."""
        if not questions:
            return []
        rows = self.reader.read([one.text for one in questions]).tolist()
        places = [max(range(len(row)), key=row.__getitem__) for row in rows]
        return [
            TypeDecision(QUESTION_TYPES[place], row[place])
            for place, row in zip(places, rows, strict=True)
        ]
