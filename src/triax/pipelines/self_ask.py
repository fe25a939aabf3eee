"""Self-Ask with retrieval: follow-up questions, each searched and answered by itself.

Source: Press et al., 2023, section 3. There a search engine gives the intermediate answers; here a
reader does, over the passages that any retriever finds for the follow-up question.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass

from triax.pipelines.rounds import Limits, Path, advance, read_rest, search_each, to_traces
from triax.reasoning.follow_up import Asked, Asker
from triax.reasoning.synthesize import Reader
from triax.records.questions import Question
from triax.records.traces import Trace
from triax.records.verbs import Retriever


@dataclass(frozen=True, slots=True)
class SelfAsk:
    """Rounds of a follow-up question, a search and an intermediate answer; the asker ends them.

    `max_rounds` counts follow-up questions and the final answer. Where `reads_unfinished` a
    question that the asker never ends is read over all that was found; else it has no answer.
    Limits as in `T2RAG`.
    """

    retriever: Retriever
    asker: Asker
    reader: Reader
    num_chunks: int = 5
    max_rounds: int = 6
    reads_unfinished: bool = True
    max_calls: int | None = None
    max_tokens: int | None = None
    name: str = "self_ask"

    async def answer(self, questions: Sequence[Question]) -> list[Trace]:
        """One trace a question, in order; a question that fails does not stop the others (R3)."""
        started = time.monotonic()
        paths: list[Path[Asked]] = [Path(question) for question in questions]
        limits = Limits(self.max_rounds, self.max_calls, self.max_tokens)
        await advance(paths, limits, self._turn)
        if self.reads_unfinished:
            await read_rest(self.reader, paths, Path.merged)
        return to_traces(paths, self.name, started)

    async def _turn(self, paths: Sequence[Path[Asked]]) -> None:
        replies = await self.asker.ask([(path.question, path.turns) for path in paths])
        asking: list[tuple[Path[Asked], str]] = []
        for path, reply in zip(paths, replies, strict=True):
            follow_up = path.take(reply, "follow-up")
            if follow_up is None:
                path.add_round(reply.error)
            elif follow_up.final is not None:
                path.short, path.stop_reason = follow_up.final, "finished"
                path.add_round(f"Final answer: {follow_up.final.text or 'unknown'}")
            else:
                asking.append((path, follow_up.text))
        if asking:
            await self._answer_each(asking)

    async def _answer_each(self, asking: Sequence[tuple[Path[Asked], str]]) -> None:
        evidences = await search_each(self.retriever, asking, self.num_chunks)
        replies = await self.reader.read(
            [
                (Question(path.question.id, text), evidence)
                for (path, text), evidence in zip(asking, evidences, strict=True)
            ]
        )
        for (path, text), evidence, reply in zip(asking, evidences, replies, strict=True):
            short = path.take(reply, "intermediate answer")
            answer = short.text if short else None
            path.turns.append(Asked(text, answer))
            note = f"Follow up: {text}\nIntermediate answer: {answer or 'not found'}"
            path.add_round(note if short else f"{note}; {reply.error}", text, evidence)
