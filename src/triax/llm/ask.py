"""One way to ask: all questions of a stage at once, and those that failed once more (R26)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from triax.records.completions import Completion, CompletionRequest, Message
from triax.records.usage import Usage
from triax.records.verbs import Completer

T = TypeVar("T")


class Unreadable(ValueError):
    """An answer of a model that has not the asked form; the message says what is wrong."""


@dataclass(frozen=True, slots=True)
class Reply(Generic[T]):
    """What was read out of a model's answer. `value` is None where nothing could be (R29).

    `is_failed` says that there was no answer at all, so that the same call may succeed later; an
    answer that could not be read would come again.
    """

    value: T | None
    usage: Usage
    text: str | None = None
    error: str = ""
    is_failed: bool = False


async def ask(
    completer: Completer,
    requests: Sequence[CompletionRequest],
    read: Callable[[int, Completion], T],
    max_retries: int = 1,
) -> list[Reply[T]]:
    """Completes all requests in one batch and reads each answer.

    `read(i, completion)` raises Unreadable where it cannot; then request i is asked again, with
    its answer and the fault in the conversation, `max_retries` times. Calls that failed outright
    are not asked again: the completer has its own retries.
    """
    replies: list[Reply[T]] = [Reply(None, Usage()) for _ in requests]
    waiting = dict(enumerate(requests))
    for attempt in range(max_retries + 1):
        if not waiting:
            break
        numbers = list(waiting)
        completions = await completer.complete([waiting[number] for number in numbers])
        for number, completion in zip(numbers, completions, strict=True):
            usage = replies[number].usage + _usage(completion)
            request = waiting.pop(number)
            if completion.text is None:
                error = completion.error or "no text, no reason"
                replies[number] = Reply(None, usage, error=error, is_failed=True)
                continue
            try:
                replies[number] = Reply(read(number, completion), usage, completion.text)
            except Unreadable as fault:
                replies[number] = Reply(None, usage, completion.text, f"unreadable: {fault}")
                if attempt < max_retries:
                    waiting[number] = _again(request, completion.text, str(fault))
    return replies


def _again(request: CompletionRequest, text: str, fault: str) -> CompletionRequest:
    return replace(
        request,
        messages=(
            *request.messages,
            Message("assistant", text),
            Message("user", f"This cannot be read: {fault}. Answer again in the asked form only."),
        ),
    )


def _usage(completion: Completion) -> Usage:
    return Usage(
        calls=1,
        cached_calls=int(completion.is_cached),
        prompt_tokens=completion.prompt_tokens,
        completion_tokens=completion.completion_tokens,
        llm_seconds=completion.seconds,
    )


def conversation(system: str, shots: Sequence[tuple[str, str]], user: str) -> tuple[Message, ...]:
    """A system turn, worked examples as turns of a conversation, and the user's turn."""
    turns = [Message("system", system)]
    for asked, answered in shots:
        turns += [Message("user", asked), Message("assistant", answered)]
    return (*turns, Message("user", user))
