"""The trained router: graph where its probability is enough above that of vanilla retrieval."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from triax.records.questions import Question
from triax.records.routes import Routing


@runtime_checkable
class RouteReader(Protocol):
    """Gives [p_vanilla, p_graph] for each question, and says which threshold it was trained to."""

    config: Mapping[str, Any]

    def read(self, questions: Sequence[str]) -> Any: ...


@dataclass(frozen=True, slots=True)
class TrainedRouter:
    """Graph if p_graph - p_vanilla > threshold (R2Adapter, section 3.2); None: as trained."""

    reader: RouteReader
    threshold: float | None = None
    name: str = "trained"

    async def route(self, questions: Sequence[Question]) -> list[Routing]:
        """Reads all questions in batches."""
        if not questions:
            return []
        least = self.reader.config["threshold"] if self.threshold is None else self.threshold
        return [
            Routing("graph" if graph - vanilla > least else "vanilla", vanilla, graph)
            for vanilla, graph in self.reader.read([one.text for one in questions]).tolist()
        ]
