"""GeAR's agent: search, remember what was found as triplets, and search again for what is missing.

Source: GeAR (Shen et al., 2024, section 3.3). Many questions advance together.
"""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from triax.llm.ask import Reply
from triax.reasoning.gist import Decision
from triax.reasoning.synthesize import Reader, Short
from triax.records.evidence import Evidence, ScoredChunk, ScoredNote
from triax.records.questions import Question
from triax.records.state import State
from triax.records.traces import Round, Trace
from triax.records.usage import Usage
from triax.records.verbs import Retriever
from triax.retrieval.fusion import fuse


@runtime_checkable
class GistRetriever(Retriever, Protocol):
    """A retriever that says in notes what it has read, and finds the passages of such texts."""

    def passages(self, texts: Sequence[str]) -> tuple[ScoredChunk, ...]: ...


@runtime_checkable
class Decider(Protocol):
    """Says of each question whether its gist is enough, or what to search next."""

    async def decide(
        self, questions: Sequence[Question], gists: Sequence[Sequence[str]]
    ) -> list[Reply[Decision]]: ...


@dataclass
class _Path:
    """One question on its way; mutable, and private to one call of `answer`."""

    question: Question
    query: str
    gist: list[str] = field(default_factory=list)
    rounds: list[Round] = field(default_factory=list)
    usage: Usage = Usage()
    stop_reason: str = ""
    error: str | None = None


@dataclass(frozen=True, slots=True)
class GeAR:
    """Rounds of search until the gist is enough; then all rounds are fused, and read.

    num_chunks: passages that are read at the end, and found in a round.
    max_rounds: searches at most; one makes no decision and is SyncGE alone.
    """

    retriever: GistRetriever
    decider: Decider
    reader: Reader
    num_chunks: int = 5
    max_rounds: int = 4
    name: str = "gear"

    async def answer(self, questions: Sequence[Question]) -> list[Trace]:
        """One trace a question, in order; a question that fails does not stop the others (R3)."""
        started = time.monotonic()
        paths = [_Path(question, question.searched) for question in questions]
        for number in range(1, self.max_rounds + 1):
            active = [path for path in paths if not path.stop_reason]
            if not active:
                break
            await self._search(active, number)
            if number < self.max_rounds:
                await self._decide(active)
        for path in paths:
            path.stop_reason = path.stop_reason or "max rounds"
        evidences = await asyncio.to_thread(lambda: [self._fused(path) for path in paths])
        whole = [n for n, path in enumerate(paths) if not path.error]
        replies = await self.reader.read([(paths[n].question, evidences[n]) for n in whole])
        read = dict(zip(whole, replies, strict=True))
        seconds = (time.monotonic() - started) / max(1, len(paths))
        return [
            self._trace(path, evidences[n], read.get(n), seconds) for n, path in enumerate(paths)
        ]

    async def _search(self, paths: Sequence[_Path], number: int) -> None:
        groups = [[path.query] for path in paths]
        found = await asyncio.to_thread(self.retriever.search, groups, self.num_chunks)
        for path, evidence in zip(paths, found, strict=True):
            path.usage += evidence.usage
            path.rounds.append(Round(number, (path.query,), evidence, State(), State()))
            path.gist += [line for line in _said(evidence) if line not in path.gist]

    async def _decide(self, paths: Sequence[_Path]) -> None:
        asked = [path.question for path in paths]
        replies = await self.decider.decide(asked, [path.gist for path in paths])
        for path, reply in zip(paths, replies, strict=True):
            path.usage += reply.usage
            if reply.is_failed:
                path.error, path.stop_reason = f"decision: {reply.error}", "error"
            elif reply.value is None:
                path.stop_reason = "unreadable decision"
            elif reply.value.query is None:
                path.stop_reason = "enough"
            elif reply.value.query in {query for one in path.rounds for query in one.queries}:
                path.stop_reason = "no progress"
            else:
                path.query = reply.value.query

    def _fused(self, path: _Path) -> Evidence:
        """The passages of all rounds and those of the gist, by rank; hits and notes of all."""
        rankings = [one.evidence.chunks for one in path.rounds]
        chunks = fuse([*rankings, self.retriever.passages(path.gist)])[: self.num_chunks]
        hits = {hit.proposition.id: hit for one in path.rounds for hit in one.evidence.hits}
        notes: dict[str, ScoredNote] = {
            found.note.text: found for one in path.rounds for found in one.evidence.notes
        }
        return Evidence(chunks, tuple(hits.values()), tuple(notes.values()))

    def _trace(
        self, path: _Path, evidence: Evidence, reply: Reply[Short] | None, seconds: float
    ) -> Trace:
        answer, error = None, path.error
        if reply is not None:
            path.usage += reply.usage
            answer = reply.value.text if reply.value else None
            error = None if reply.value else f"reading: {reply.error}"
        return Trace(
            question_id=path.question.id,
            question=path.question.text,
            pipeline=self.name,
            answer=answer,
            stop_reason=path.stop_reason,
            error=error,
            rounds=tuple(path.rounds),
            chunk_ids=tuple(one.chunk.id for one in evidence.chunks),
            usage=path.usage,
            seconds=seconds,
            context=evidence.texts,
        )


def _said(evidence: Evidence) -> list[str]:
    """What was read in a round: the lines of its notes, or else its propositions."""
    lines = [line for found in evidence.notes for line in found.note.text.splitlines() if line]
    return lines or [hit.proposition.text for hit in evidence.hits]
