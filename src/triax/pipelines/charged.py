"""What a search asks of a language model, on the bill of the question that it was asked for."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, runtime_checkable

from triax.records.questions import Question
from triax.records.traces import Trace, Usage
from triax.records.verbs import Pipeline


@runtime_checkable
class AskingFilter(Protocol):
    """A part of a retriever that asks a model, knows what for, and remembers the cost."""

    def name_questions(self, ids: Mapping[str, str]) -> None: ...

    def spent(self, group: Sequence[str]) -> Usage: ...


@dataclass(frozen=True, slots=True)
class Charged:
    """A pipeline that searches once with each question; adds to its traces what that has cost.

    A question that stands twice in a batch pays once for both.
    """

    pipeline: Pipeline
    filter: AskingFilter

    @property
    def name(self) -> str:
        """That of the pipeline."""
        return self.pipeline.name

    async def answer(self, questions: Sequence[Question]) -> list[Trace]:
        """One trace a question, in order."""
        self.filter.name_questions({one.searched: one.id for one in questions})
        traces = await self.pipeline.answer(questions)
        return [
            replace(trace, usage=trace.usage + self.filter.spent((one.searched,)))
            for one, trace in zip(questions, traces, strict=True)
        ]
