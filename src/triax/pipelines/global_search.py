"""GraphRAG's global search: all reports of the widest communities, in batches, for every question.

Nothing is searched: each question costs one call for every batch of reports. It needs a language
model; its reports need none (`reporter=extractive`).

Source: "From Local to Global" (Edge et al., 2024, section 3.1.6) and GraphRAG 3.1.2.
"""

import random
import time
from collections.abc import Sequence
from dataclasses import dataclass

from triax.indexing.reports import CommunityReports, Report
from triax.reasoning.map_reduce import MapReduce, Reduced
from triax.records.questions import Question
from triax.records.traces import Trace


@dataclass(frozen=True, slots=True)
class GlobalSearch:
    """Shuffles the reports, maps, reduces.

    Args:
        reports: of the index.
        map_reduce: reads them.
        max_level: of the communities; 0 is the widest.
        num_chunks: that a trace names at most: those of the reports that the points are taken
            from, best point first.
        seed: of the shuffle, which spares batches that an order of levels would favour.
        name: in traces.
    """

    reports: CommunityReports
    map_reduce: MapReduce
    max_level: int = 2
    num_chunks: int = 100
    seed: int = 86
    name: str = "graphrag_global"

    async def answer(self, questions: Sequence[Question]) -> list[Trace]:
        """One trace a question, in order; no answer where no report helps."""
        started = time.monotonic()
        reports = list(self.reports.at(self.max_level))
        random.Random(self.seed).shuffle(reports)
        found = await self.map_reduce.answer(questions, [report.shown for report in reports])
        seconds = (time.monotonic() - started) / max(1, len(questions))
        return [
            self._trace(question, reduced, reports, seconds)
            for question, reduced in zip(questions, found, strict=True)
        ]

    def _trace(
        self, question: Question, reduced: Reduced, reports: Sequence[Report], seconds: float
    ) -> Trace:
        reply = reduced.reply
        sources = (reports[place] for point in reduced.points for place in point.sources)
        chunk_ids = dict.fromkeys(one for report in sources for one in report.chunk_ids)
        return Trace(
            question_id=question.id,
            question=question.text,
            pipeline=self.name,
            answer=reply.value.text if reply.value else None,
            stop_reason=_stop_reason(reduced),
            error=None if reply.value else f"global search: {reply.error}",
            chunk_ids=tuple(chunk_ids)[: self.num_chunks],
            context=tuple(point.shown for point in reduced.points),
            usage=reply.usage,
            seconds=seconds,
        )


def _stop_reason(reduced: Reduced) -> str:
    if reduced.reply.value is None:
        return "error"
    if not reduced.points:
        return "no point"
    return "reduced, some batches failed" if reduced.num_failed else "reduced"
