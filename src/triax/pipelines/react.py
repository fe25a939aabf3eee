"""ReAct: thought, action and observation in turns (Yao et al., 2023, section 3)."""

import time
from collections.abc import Sequence
from dataclasses import dataclass

from triax.pipelines.rounds import Limits, Path, advance, read_rest, search_each, to_traces
from triax.reasoning.action import Actor, Step, look_up
from triax.reasoning.answer_text import is_abstention
from triax.reasoning.synthesize import Reader, Short
from triax.records.questions import Question
from triax.records.traces import Trace
from triax.records.verbs import Retriever


@dataclass(frozen=True, slots=True)
class ReAct:
    """The model searches and looks up as it likes, until it finishes with an answer.

    `num_chunks` is what one search shows, `max_rounds` the most actions (the paper's 7). A question
    that the model never finishes is read by `reader` over all that was found; without a reader it
    has no answer, as in the paper. Limits as in `T2RAG`.
    """

    retriever: Retriever
    actor: Actor
    reader: Reader | None = None
    num_chunks: int = 3
    max_rounds: int = 7
    max_calls: int | None = None
    max_tokens: int | None = None
    name: str = "react"

    async def answer(self, questions: Sequence[Question]) -> list[Trace]:
        """One trace a question, in order; a question that fails does not stop the others (R3)."""
        started = time.monotonic()
        paths: list[Path[Step]] = [Path(question) for question in questions]
        limits = Limits(self.max_rounds, self.max_calls, self.max_tokens)
        await advance(paths, limits, self._turn)
        if self.reader is not None:
            await read_rest(self.reader, paths, Path.merged)
        return to_traces(paths, self.name, started)

    async def _turn(self, paths: Sequence[Path[Step]]) -> None:
        replies = await self.actor.act([(path.question, path.turns) for path in paths])
        searching: list[tuple[Path[Step], Step]] = []
        for path, reply in zip(paths, replies, strict=True):
            action = path.take(reply, "action")
            if action is None:
                path.add_round(reply.error)
            elif action.verb == "finish":
                nothing = is_abstention(action.argument)
                path.short = Short(None if nothing else action.argument)
                path.stop_reason = "finished"
                path.add_round(str(action))
            elif action.verb == "lookup":
                step = Step(action, sentence=look_up(action.argument, path.turns))
                path.turns.append(step)
                path.add_round(f"{action}\n{step.sentence or 'Nothing was found.'}")
            else:
                searching.append((path, Step(action)))
        asking = [(path, step.action.argument) for path, step in searching]
        evidences = await search_each(self.retriever, asking, self.num_chunks)
        for (path, step), evidence in zip(searching, evidences, strict=True):
            path.turns.append(Step(step.action, evidence))
            path.add_round(str(step.action), step.action.argument, evidence)
