"""What was asked of language models and what it cost, call by call."""

import json
import os
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

from triax.llm.arrivals import OnResult, complete_each
from triax.records.completions import Completion, CompletionRequest
from triax.records.files import read_jsonl
from triax.records.usage import Usage
from triax.records.verbs import Completer


def usage_of(completions: Iterable[Completion]) -> Usage:
    """The cost of these calls. `calls` counts all of them, `cached_calls` those from a cache.

    >>> usage_of([Completion("a", "stop", 7, 2), Completion("a", "stop", 7, 2, is_cached=True)])
    Usage(calls=2, cached_calls=1, prompt_tokens=14, completion_tokens=4, llm_seconds=0.0)
    """
    total = Usage()
    for completion in completions:
        total += Usage(
            1,
            int(completion.is_cached),
            completion.prompt_tokens,
            completion.completion_tokens,
            completion.seconds,
        )
    return total


def read_usage(path: Path | str) -> Usage:
    """The sum over a ledger's file, calls from a cache included; nothing where there is no file."""
    path = Path(path)
    total = Usage()
    for row in read_jsonl(path) if path.exists() else ():
        total += Usage(
            1,
            int(row["is_cached"]),
            row["prompt_tokens"],
            row["completion_tokens"],
            row["seconds"],
        )
    return total


class Ledger:
    """Keeps one JSON line a call in `path`, and the sums of what this process recorded.

    Lines are appended whole, each by one write, so several processes may share a file. Fields:
    time (seconds since 1970), stage, question_id, model, prompt_tokens, completion_tokens,
    seconds, is_cached, finish_reason, error. Prompts and answers are not in it.
    """

    def __init__(self, path: Path | str | None = None) -> None:
        self.path = None if path is None else Path(path)
        self._sums: dict[tuple[str, str, bool], Usage] = {}
        if self.path is not None:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            _end_last_line(self.path)

    def record(self, request: CompletionRequest, completion: Completion, model: str) -> None:
        """Adds one call.

        Raises:
            OSError: the file cannot be written.
        """
        key = (request.stage, request.question_id, completion.is_cached)
        self._sums[key] = self._sums.get(key, Usage()) + usage_of([completion])
        if self.path is None:
            return
        line = json.dumps(
            {
                "time": round(time.time(), 3),
                "stage": request.stage,
                "question_id": request.question_id,
                "model": model,
                "prompt_tokens": completion.prompt_tokens,
                "completion_tokens": completion.completion_tokens,
                "seconds": round(completion.seconds, 6),
                "is_cached": completion.is_cached,
                "finish_reason": completion.finish_reason,
                "error": completion.error,
            }
        )
        _append(self.path, line)

    def usage(
        self,
        stage: str | None = None,
        question_id: str | None = None,
        is_cached: bool | None = None,
    ) -> Usage:
        """The sum over the calls of a stage, a question, or a kind; None takes all.

        `is_cached=False` is what this process paid, `is_cached=True` what the cache spared it.
        """
        total = Usage()
        for (of_stage, of_question, of_cache), usage in self._sums.items():
            if (
                stage in (None, of_stage)
                and question_id in (None, of_question)
                and is_cached in (None, of_cache)
            ):
                total += usage
        return total

    def by_stage(self, is_cached: bool | None = None) -> dict[str, Usage]:
        """The sum for each stage, in the order of their first calls."""
        stages = dict.fromkeys(stage for stage, _, _ in self._sums)
        return {stage: self.usage(stage=stage, is_cached=is_cached) for stage in stages}

    def by_question(self, is_cached: bool | None = None) -> dict[str, Usage]:
        """The sum for each question, in the order of their first calls."""
        sums: dict[str, Usage] = {}
        for (_, question_id, of_cache), usage in self._sums.items():
            if is_cached in (None, of_cache):
                sums[question_id] = sums.get(question_id, Usage()) + usage
        return sums


class LedgerCompleter:
    """Records every call of another completer when its result arrives.

    Put it outside a cache, so that cached and real calls are told apart.
    """

    def __init__(self, completer: Completer, ledger: Ledger) -> None:
        self.model = completer.model
        self.ledger = ledger
        self._completer = completer

    @property
    def identity(self) -> dict[str, object]:
        """That of the completer inside."""
        return self._completer.identity  # type: ignore[attr-defined]

    async def complete(self, requests: Sequence[CompletionRequest]) -> list[Completion]:
        """One completion for each request, in order."""
        # A completer that cannot tell of arrivals is left to batch the whole as it likes.
        return await self._record(requests, lambda position, completion: None, len(requests))

    async def complete_each(
        self, requests: Sequence[CompletionRequest], on_result: OnResult
    ) -> list[Completion]:
        """As `complete`; calls `on_result(position, completion)` when each has arrived."""
        return await self._record(requests, on_result, None)

    async def _record(
        self, requests: Sequence[CompletionRequest], on_result: OnResult, batch_size: int | None
    ) -> list[Completion]:
        def record(position: int, completion: Completion) -> None:
            self.ledger.record(requests[position], completion, self.model)
            on_result(position, completion)

        return await complete_each(self._completer, requests, record, batch_size)


def _append(path: Path, line: str) -> None:
    handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        os.write(handle, f"{line}\n".encode())
    finally:
        os.close(handle)


def _end_last_line(path: Path) -> None:
    """Ends a line that a full disk cut short, so that the next one stands alone."""
    if not path.exists() or path.stat().st_size == 0:
        return
    with path.open("rb") as stream:
        stream.seek(-1, os.SEEK_END)
        is_whole = stream.read(1) == b"\n"
    if not is_whole:
        _append(path, "")
