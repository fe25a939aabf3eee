"""Completions as they arrive, so that each can be stored before the last one is there (R4)."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Protocol, TypeVar, runtime_checkable

from triax.records.completions import Completion, CompletionRequest
from triax.records.verbs import Completer

T = TypeVar("T")
OnResult = Callable[[int, Completion], None]


@runtime_checkable
class ArrivingCompleter(Protocol):
    """A completer that tells of each result when it is there, not only when all are."""

    async def complete_each(
        self, requests: Sequence[CompletionRequest], on_result: OnResult
    ) -> list[Completion]: ...


async def complete_each(
    completer: Completer,
    requests: Sequence[CompletionRequest],
    on_result: OnResult,
    batch_size: int | None = None,
) -> list[Completion]:
    """Completes requests in order of position and calls `on_result(position, completion)` on each.

    A completer without `complete_each` of its own gets batches of `batch_size` (None: its own
    `batch_size`, or 32), one after the other: one batch is what a killed process may lose.

    Raises:
        ValueError: the completer gave more or fewer results than it was asked for.
    """
    if isinstance(completer, ArrivingCompleter):
        return await completer.complete_each(requests, on_result)
    batch_size = batch_size or getattr(completer, "batch_size", 32)
    completions: list[Completion] = []
    for start in range(0, len(requests), batch_size):
        batch = requests[start : start + batch_size]
        arrived = await completer.complete(batch)
        if len(arrived) != len(batch):
            raise ValueError(
                f"{completer.model} gave {len(arrived)} completions for {len(batch)} requests; "
                "a completer must give one for each"
            )
        for position, completion in enumerate(arrived, start):
            on_result(position, completion)
        completions += arrived
    return completions


async def gather(awaitables: Iterable[Awaitable[T]]) -> list[T]:
    """All results in order. At the first exception the others are cancelled and waited for."""
    tasks = [asyncio.ensure_future(awaitable) for awaitable in awaitables]
    try:
        return list(await asyncio.gather(*tasks))
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
