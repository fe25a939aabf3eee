"""T2RAG: triplet-driven thinking (Gong et al., ACL 2026 Findings, section 3, Algorithm 2).

Many questions advance together: each round is one search and one batch of completions for all
that are still open.
"""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from triax.llm.ask import Reply
from triax.pipelines.merging import merge_chunks
from triax.reasoning.decompose import Decomposer
from triax.reasoning.provenance import find_sources
from triax.reasoning.resolve import Resolver, Task
from triax.reasoning.synthesize import Ending, Short, Synthesizer
from triax.reasoning.update import stop_reason, update
from triax.records.evidence import Evidence
from triax.records.query_triplets import QueryTriplet
from triax.records.questions import Question
from triax.records.state import State
from triax.records.traces import Round, Trace
from triax.records.usage import Usage
from triax.records.verbs import Retriever


@dataclass
class _Progress:
    """One question on its way; mutable, and private to one call of `answer`."""

    question: Question
    state: State = State()
    decomposition: tuple[QueryTriplet, ...] = ()
    rounds: list[Round] = field(default_factory=list)
    usage: Usage = Usage()
    stop_reason: str = ""
    error: str | None = None


@dataclass(frozen=True, slots=True)
class T2RAG:
    """Decompose, then rounds of adaptive retrieval and resolution, then the answer.

    `num_chunks` is the paper's k, `max_rounds` its N (1 is the ablation "single round").
    `question_query` says when the question itself is searched too: `when_empty` as in the
    paper's second version (nothing is searchable), `always`, or `never`. `max_calls` and
    `max_tokens` end a question's rounds once they are spent (R17), after which one call is made
    for the answer; None means no limit. A call that fails outright ends its question with an
    error, so that a later run can make it again; an unreadable answer leaves the state as it was.
    """

    retriever: Retriever
    decomposer: Decomposer
    resolver: Resolver
    synthesizer: Synthesizer
    num_chunks: int = 5
    max_rounds: int = 3
    question_query: Literal["when_empty", "always", "never"] = "when_empty"
    max_calls: int | None = None
    max_tokens: int | None = None
    name: str = "t2rag"

    async def answer(self, questions: Sequence[Question]) -> list[Trace]:
        """One trace a question, in order; a question that fails does not stop the others (R3)."""
        started = time.monotonic()
        paths = [_Progress(question) for question in questions]
        await self._decompose(paths)
        for number in range(1, self.max_rounds + 1):
            active = [path for path in paths if not path.stop_reason and not path.error]
            if not active:
                break
            await self._advance(active, number)
        for path in paths:
            path.stop_reason = path.stop_reason or ("error" if path.error else "max rounds")
        replies = await self._synthesize(paths)
        seconds = (time.monotonic() - started) / max(1, len(paths))
        return [self._trace(path, replies.get(id(path)), seconds) for path in paths]

    async def _decompose(self, paths: Sequence[_Progress]) -> None:
        replies = await self.decomposer.decompose([path.question for path in paths])
        for path, reply in zip(paths, replies, strict=True):
            path.usage += reply.usage
            if not reply.value:
                path.error = f"decomposition: {reply.error or 'no query triplet'}"
                continue
            path.decomposition = reply.value
            path.state = State.of(reply.value)
            path.stop_reason = (
                "resolved" if path.state.is_resolved else self._budget_spent(path.usage)
            )

    async def _advance(self, paths: Sequence[_Progress], number: int) -> None:
        groups = [self._queries(path) for path in paths]
        evidences = await self._search(groups)
        found = [
            (path, group, evidence)
            for path, group, evidence in zip(paths, groups, evidences, strict=True)
            if evidence.chunks
        ]
        replies = await self.resolver.resolve(
            [Task(path.question, path.state, evidence) for path, _, evidence in found]
        )
        answered = {id(path): reply for (path, *_), reply in zip(found, replies, strict=True)}
        for path, group, evidence in zip(paths, groups, evidences, strict=True):
            self._turn(path, number, group, evidence, answered.get(id(path)))

    async def _search(self, groups: Sequence[Sequence[str]]) -> list[Evidence]:
        """One search for all questions that have something to search for."""
        evidences = [Evidence() for _ in groups]
        asking = [i for i, group in enumerate(groups) if group]
        if asking:
            found = await asyncio.to_thread(
                self.retriever.search, [groups[i] for i in asking], self.num_chunks
            )
            for i, evidence in zip(asking, found, strict=True):
                evidences[i] = evidence
        return evidences

    def _turn(
        self,
        path: _Progress,
        number: int,
        group: Sequence[str],
        evidence: Evidence,
        reply: Reply[tuple[QueryTriplet, ...]] | None,
    ) -> None:
        before, notes = path.state, []
        path.usage += evidence.usage
        if reply is None:
            notes.append("nothing was found")
        else:
            path.usage += reply.usage
            notes += [reply.error] if reply.error else []
            # An unreadable answer leaves the state as it was; it resolves nothing (R26).
            moved = update(before, reply.value or (), number)
            path.state = _with_sources(moved.state, number, evidence)
            if moved.num_unmatched:
                notes.append(f"{moved.num_unmatched} triplets fit no query triplet")
        path.rounds.append(
            Round(number, tuple(group), evidence, before, path.state, "; ".join(notes))
        )
        path.stop_reason = stop_reason(
            before, path.state, number, self.max_rounds, has_evidence=bool(evidence.chunks)
        ) or self._budget_spent(path.usage)
        if reply is not None and reply.value is None:
            if reply.is_failed:
                path.error = f"resolution: {reply.error}"
                path.stop_reason = "error"
            elif path.stop_reason == "no progress":
                path.stop_reason = "unreadable resolution"

    def _queries(self, path: _Progress) -> list[str]:
        # `?x | ?x | ?x` has one unknown and nothing to search for.
        queries = list(dict.fromkeys(one.query for one in path.state.searchable if one.query))
        if self.question_query == "always" or (self.question_query == "when_empty" and not queries):
            queries.append(path.question.text)
        return queries

    def _budget_spent(self, usage: Usage) -> str:
        if self.max_calls is not None and usage.calls >= self.max_calls:
            return "max calls"
        tokens = usage.prompt_tokens + usage.completion_tokens
        return "max tokens" if self.max_tokens is not None and tokens >= self.max_tokens else ""

    async def _synthesize(self, paths: Sequence[_Progress]) -> dict[int, Reply[Short]]:
        whole = [path for path in paths if not path.error]
        replies = await self.synthesizer.synthesize(
            [
                Ending(
                    path.question,
                    path.decomposition,
                    path.state,
                    path.rounds[-1].evidence if path.rounds else Evidence(),
                )
                for path in whole
            ]
        )
        return {id(path): reply for path, reply in zip(whole, replies, strict=True)}

    def _trace(self, path: _Progress, reply: Reply[Short] | None, seconds: float) -> Trace:
        answer = None
        if reply is not None:
            path.usage += reply.usage
            if reply.value is None:
                path.error = f"synthesis: {reply.error}"
            else:
                answer = reply.value.text
        return Trace(
            question_id=path.question.id,
            question=path.question.text,
            pipeline=self.name,
            answer=answer,
            stop_reason=path.stop_reason,
            error=path.error,
            decomposition=path.decomposition,
            rounds=tuple(path.rounds),
            final=path.state,
            chunk_ids=merge_chunks([one.evidence for one in path.rounds]),
            usage=path.usage,
            seconds=seconds,
        )


def _with_sources(state: State, number: int, evidence: Evidence) -> State:
    resolved = tuple(
        replace(one, chunk_ids=find_sources(one.triplet, evidence)) if one.round == number else one
        for one in state.resolved
    )
    return replace(state, resolved=resolved)
