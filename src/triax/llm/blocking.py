"""Calls from where nobody can await: a search, the making of an index."""

import asyncio
from collections.abc import Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from triax.records.completions import Completion, CompletionRequest
from triax.records.verbs import Completer

T = TypeVar("T")


def complete_now(completer: Completer, requests: Sequence[CompletionRequest]) -> list[Completion]:
    """Completes all requests, in order, and blocks until all are there."""
    return run_now(completer.complete(requests)) if requests else []


def run_now(calls: Coroutine[Any, Any, T]) -> T:
    """Runs a coroutine to its end, inside and outside of a running event loop."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(calls)
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, calls).result()
