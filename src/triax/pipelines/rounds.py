"""Many questions advance together, round by round, and leave when they are done.

Each round is one search and one batch of completions for all that are still open, as in T2RAG. A
question whose call fails ends with an error, so that a later run can make it again (R3).
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from triax.llm.ask import Reply
from triax.pipelines.merging import merge_evidence
from triax.reasoning.synthesize import Reader, Short
from triax.records.evidence import Evidence
from triax.records.questions import Question
from triax.records.state import State
from triax.records.traces import Round, Trace
from triax.records.usage import Usage
from triax.records.verbs import Retriever

T = TypeVar("T")
V = TypeVar("V")


@dataclass
class Path(Generic[T]):
    """One question on its way; mutable, and private to one call of `answer`.

    `turns` is what a method keeps of each round. `short` is the answer, None before there is one.
    """

    question: Question
    turns: list[T] = field(default_factory=list)
    rounds: list[Round] = field(default_factory=list)
    usage: Usage = Usage()
    short: Short | None = None
    stop_reason: str = ""
    error: str | None = None

    def merged(self, max_chunks: int | None = None, order: str = "score") -> Evidence:
        """What all rounds found."""
        return merge_evidence([one.evidence for one in self.rounds], max_chunks, order)

    def add_round(self, note: str, query: str = "", evidence: Evidence | None = None) -> None:
        """Notes down a round: what was searched and found, and what was thought or went wrong."""
        queries = (query,) if query else ()
        number = len(self.rounds) + 1
        self.rounds.append(Round(number, queries, evidence or Evidence(), State(), State(), note))

    def take(self, reply: Reply[V], stage: str) -> V | None:
        """The value of a reply. Without one the question stops: failed, or as unreadable (R26)."""
        self.usage += reply.usage
        if reply.value is None and reply.is_failed:
            self.error, self.stop_reason = f"{stage}: {reply.error}", "error"
        elif reply.value is None:
            self.stop_reason = f"unreadable {stage}"
        return reply.value


@dataclass(frozen=True, slots=True)
class Limits:
    """What one question may take (R17); None means no limit."""

    max_rounds: int
    max_calls: int | None = None
    max_tokens: int | None = None

    def spent(self, usage: Usage) -> str:
        """The limit that a usage has reached, "" for none."""
        if self.max_calls is not None and usage.calls >= self.max_calls:
            return "max calls"
        tokens = usage.prompt_tokens + usage.completion_tokens
        return "max tokens" if self.max_tokens is not None and tokens >= self.max_tokens else ""


async def advance(
    paths: Sequence[Path[T]],
    limits: Limits,
    turn: Callable[[Sequence[Path[T]]], Awaitable[None]],
) -> None:
    """Takes a turn for all open paths together, until none is open or the rounds are spent."""
    for _ in range(limits.max_rounds):
        active = [path for path in paths if not path.stop_reason]
        if not active:
            break
        await turn(active)
        for path in active:
            path.stop_reason = path.stop_reason or limits.spent(path.usage)
    for path in paths:
        path.stop_reason = path.stop_reason or "max rounds"


async def search_each(
    retriever: Retriever, asking: Sequence[tuple[Path[T], str]], num_chunks: int
) -> list[Evidence]:
    """One search for all paths, each with its query; an empty query finds nothing."""
    groups = [[query] for _, query in asking if query]
    found = iter(await asyncio.to_thread(retriever.search, groups, num_chunks) if groups else ())
    evidences = [next(found) if query else Evidence() for _, query in asking]
    for (path, _), evidence in zip(asking, evidences, strict=True):
        path.usage += evidence.usage
    return evidences


async def read_rest(
    reader: Reader, paths: Sequence[Path[T]], shown: Callable[[Path[T]], Evidence]
) -> None:
    """Reads the answers of the questions that ended without one, and without an error."""
    rest = [path for path in paths if path.short is None and path.error is None]
    replies = await reader.read([(path.question, shown(path)) for path in rest]) if rest else []
    for path, reply in zip(rest, replies, strict=True):
        path.usage += reply.usage
        path.short = reply.value
        if reply.value is None:
            path.error = f"reading: {reply.error}"


def to_traces(
    paths: Sequence[Path[T]],
    name: str,
    started: float,
    shown: Callable[[Path[T]], Evidence] = Path.merged,
) -> list[Trace]:
    """One trace a path, in order. `started` is `time.monotonic()` before the first round."""
    seconds = (time.monotonic() - started) / max(1, len(paths))
    return [
        Trace(
            question_id=path.question.id,
            question=path.question.text,
            pipeline=name,
            answer=path.short.text if path.short else None,
            stop_reason=path.stop_reason,
            error=path.error,
            rounds=tuple(path.rounds),
            chunk_ids=tuple(found.chunk.id for found in shown(path).chunks),
            usage=path.usage,
            seconds=seconds,
        )
        for path in paths
    ]
