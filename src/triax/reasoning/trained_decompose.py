"""Decomposition without a language model: a trained writer gives the query triplets."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from triax.llm.ask import Reply
from triax.records.query_triplets import QueryTriplet
from triax.records.questions import Question
from triax.records.usage import Usage
from triax.records.verbs import Completer


@runtime_checkable
class WrittenQuery(Protocol):
    """What a writer gives. `operator` says how the branches of a comparison are compared."""

    @property
    def operator(self) -> str: ...

    @property
    def triplets(self) -> tuple[QueryTriplet, ...]: ...


@runtime_checkable
class Writer(Protocol):
    """Writes query triplets, as `triax.models.trained_writer.TrainedWriter` does."""

    def write(self, questions: Sequence[str]) -> Sequence[WrittenQuery]: ...


@dataclass(frozen=True, slots=True)
class TrainedDecomposer:
    """Takes the writer's query triplets. Each question has some, since the writer's rules allow
    nothing else.

    It asks no completer, and takes one so that it can stand wherever a prompted decomposer does.
    """

    writer: Writer
    completer: Completer | None = None

    async def decompose(
        self, questions: Sequence[Question]
    ) -> list[Reply[tuple[QueryTriplet, ...]]]:
        """Writes for all questions in one batch."""
        if not questions:
            return []
        written = self.writer.write([question.text for question in questions])
        return [
            Reply(tuple(one.triplets), Usage(), text="\n".join(str(t) for t in one.triplets))
            for one in written
        ]
