"""A router before two pipelines: vanilla where that suffices, the graph where it is needed.

Source: R2Adapter, sections 3.2 and 3.3. Any pipeline can stand on either side, T2RAG too.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

from triax.records.questions import Question
from triax.records.routes import Routing
from triax.records.traces import Trace
from triax.records.usage import Usage
from triax.records.verbs import Pipeline, QueryRewriter, Router


@dataclass(frozen=True, slots=True)
class Hybrid:
    """Routes each question, rewrites the uncertain ones that go to the graph, and answers all.

    With a rewriter, a question that goes to the graph with p_graph below `rewrite_threshold` (tau)
    is searched with what the rewriter made of it. A router that gives no probability is sure.
    """

    router: Router
    vanilla: Pipeline
    graph: Pipeline
    rewriter: QueryRewriter | None = None
    rewrite_threshold: float = 0.6
    name: str = "hybrid"

    async def answer(self, questions: Sequence[Question]) -> list[Trace]:
        """One trace a question, in order, each with its routing."""
        started = time.monotonic()
        routings = await self.router.route(questions)
        asked, usages = await self._rewritten(questions, routings)
        routed_s = (time.monotonic() - started) / max(1, len(questions))
        traces: list[Trace | None] = [None] * len(questions)
        for side, pipeline in (("vanilla", self.vanilla), ("graph", self.graph)):
            places = [n for n, one in enumerate(routings) if one.route == side]
            if places:
                found = await pipeline.answer([asked[n] for n in places])
                for place, trace in zip(places, found, strict=True):
                    traces[place] = trace
        return [
            replace(
                trace,
                pipeline=self.name,
                routing=routing,
                usage=trace.usage + usage,
                seconds=trace.seconds + routed_s,
            )
            for trace, routing, usage in zip(traces, routings, usages, strict=True)
            if trace is not None
        ]

    async def _rewritten(
        self, questions: Sequence[Question], routings: Sequence[Routing]
    ) -> tuple[list[Question], list[Usage]]:
        asked, usages = list(questions), [Usage()] * len(questions)
        if self.rewriter is None:
            return asked, usages
        places = [
            n
            for n, one in enumerate(routings)
            if one.route == "graph"
            and one.p_graph is not None
            and one.p_graph < self.rewrite_threshold
        ]
        found = await self.rewriter.rewrite([questions[n] for n in places]) if places else []
        for place, (text, usage) in zip(places, found, strict=True):
            usages[place] = usage
            if text:
                asked[place] = replace(questions[place], search=text)
        return asked, usages
