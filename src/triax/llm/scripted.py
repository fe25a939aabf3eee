"""A completer that says what it is told to: for tests, and for showing how parts fit together."""

from collections.abc import Callable, Sequence

from triax.llm.arrivals import OnResult
from triax.records.completions import Completion, CompletionRequest

RAISE = "__RAISE__"


class ScriptedCompleter:
    """Answers from a list, in the order of the calls, or by a function of the request.

    An answer that begins with `__RAISE__` becomes a failed call, whose error is what follows; so
    does a call beyond the end of the list. Tokens are words. `requests` holds all that was asked.

    >>> import asyncio
    >>> from triax.records.completions import Message
    >>> completer = ScriptedCompleter(["Paris"])
    >>> request = CompletionRequest((Message("user", "Capital of France?"),))
    >>> asyncio.run(completer.complete([request]))[0].text
    'Paris'
    """

    def __init__(
        self,
        answers: Sequence[str] | Callable[[CompletionRequest], str],
        model: str = "scripted",
    ) -> None:
        self.model = model
        self.requests: list[CompletionRequest] = []
        self.identity: dict[str, object] = {"kind": "scripted", "model": model}
        self._answers = answers

    async def complete(self, requests: Sequence[CompletionRequest]) -> list[Completion]:
        """One completion for each request, in order; what the function raises goes through."""
        return await self.complete_each(requests, lambda position, completion: None)

    async def complete_each(
        self, requests: Sequence[CompletionRequest], on_result: OnResult
    ) -> list[Completion]:
        """As `complete`; calls `on_result(position, completion)` after each."""
        completions = []
        for position, request in enumerate(requests):
            completions.append(self._one(request))
            on_result(position, completions[-1])
        return completions

    def _one(self, request: CompletionRequest) -> Completion:
        number = len(self.requests)
        self.requests.append(request)
        if callable(self._answers):
            answer = self._answers(request)
        elif number < len(self._answers):
            answer = self._answers[number]
        else:
            answer = f"{RAISE}the script has {len(self._answers)} answers, call {number + 1} came"
        num_prompt = sum(len(message.content.split()) for message in request.messages)
        if answer.startswith(RAISE):
            error = answer.removeprefix(RAISE).strip(": ") or "scripted failure"
            return Completion(None, "error", num_prompt, error=error)
        return Completion(answer, "stop", num_prompt, len(answer.split()))
