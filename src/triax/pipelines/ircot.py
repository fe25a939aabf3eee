"""IRCoT: retrieval and chain of thought in turns (Trivedi et al., 2023, section 3).

The question is searched, a sentence is thought over what was found, that sentence is searched, and
so on, until one holds the answer; then a reader answers over all that was found. Any retriever can
stand here: with HippoRAG 2's this is "IRCoT + HippoRAG". Any thinker too: one that reads instead of
thinking makes it ITER-RETGEN's iterative reading.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass

from triax.pipelines.merging import merge_evidence
from triax.pipelines.rounds import Limits, Path, advance, read_rest, search_each, to_traces
from triax.reasoning.synthesize import Reader
from triax.reasoning.thought import Thinker, Thought, Thread, next_query
from triax.records.evidence import Evidence
from triax.records.questions import Question
from triax.records.traces import Trace
from triax.records.verbs import Retriever


@dataclass(frozen=True, slots=True)
class IRCoT:
    """Rounds of a search and a thought, then the answer.

    `num_chunks` is the paper's K, `max_rounds` the most sentences of a chain. `max_passages` is how
    many of the passages of all rounds stay, and `order` which: as they were found (`round`, the
    paper's), or those of the best scores (`score`, as in HippoRAG's and T2RAG's version). Where
    `reads_thoughts` the answer is that of the last thought, and the reader is asked only where it
    has none. `max_calls` and `max_tokens` end a question's rounds once they are spent (R17), after
    which one call is made for the answer; None means no limit.
    """

    retriever: Retriever
    thinker: Thinker
    reader: Reader
    num_chunks: int = 4
    max_rounds: int = 10
    max_passages: int | None = 15
    order: str = "round"
    reads_thoughts: bool = False
    max_calls: int | None = None
    max_tokens: int | None = None
    name: str = "ircot"

    async def answer(self, questions: Sequence[Question]) -> list[Trace]:
        """One trace a question, in order; a question that fails does not stop the others (R3)."""
        started = time.monotonic()
        paths: list[Path[Thought]] = [Path(question) for question in questions]
        limits = Limits(self.max_rounds, self.max_calls, self.max_tokens)
        await advance(paths, limits, self._turn)
        if self.reads_thoughts:
            for path in paths:
                if path.turns and path.error is None:
                    path.short = path.turns[-1].answer
        await read_rest(self.reader, paths, self._shown)
        return to_traces(paths, self.name, started, self._shown)

    def _shown(self, path: Path[Thought]) -> Evidence:
        return path.merged(self.max_passages, self.order)

    async def _turn(self, paths: Sequence[Path[Thought]]) -> None:
        queries = [next_query(path.question, path.turns) for path in paths]
        asking = list(zip(paths, queries, strict=True))
        evidences = await search_each(self.retriever, asking, self.num_chunks)
        threads = []
        for path, evidence in zip(paths, evidences, strict=True):
            found = [one.evidence for one in path.rounds] + [evidence]
            shown = merge_evidence(found, self.max_passages, self.order)
            threads.append(Thread(path.question, shown, tuple(path.turns)))
        replies = await self.thinker.think(threads)
        for (path, query), evidence, reply in zip(asking, evidences, replies, strict=True):
            thought = path.take(reply, "thought")
            path.add_round(thought.text if thought else reply.error, query, evidence)
            if thought is None:
                continue
            path.turns.append(thought)
            if not thought.text:
                path.stop_reason = "no thought"
            elif thought.is_last:
                path.stop_reason = "concluded"
