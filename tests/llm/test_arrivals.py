import asyncio

import pytest

from triax.llm.arrivals import ArrivingCompleter, complete_each, gather
from triax.llm.scripted import ScriptedCompleter
from triax.records.completions import Completion, CompletionRequest, Message


class Batching:
    """A completer with no `complete_each`."""

    model = "batching"
    batch_size = 3

    def __init__(self, surplus: int = 0) -> None:
        self.sizes: list[int] = []
        self.surplus = surplus

    async def complete(self, requests):
        self.sizes.append(len(requests))
        return [Completion(request.messages[0].content) for request in requests][
            : len(requests) - self.surplus
        ]


def requests_of(*texts: str) -> list[CompletionRequest]:
    return [CompletionRequest((Message("user", text),)) for text in texts]


@pytest.mark.parametrize("batch_size, sizes", [(None, [3, 3, 1]), (5, [5, 2]), (7, [7])])
def test_a_completer_without_arrivals_gets_batches(batch_size, sizes):
    completer, seen = Batching(), []
    out = asyncio.run(
        complete_each(
            completer,
            requests_of(*"abcdefg"),
            lambda position, completion: seen.append((position, completion.text)),
            batch_size,
        )
    )
    assert completer.sizes == sizes
    assert [completion.text for completion in out] == list("abcdefg")
    assert seen == list(enumerate("abcdefg"))


def test_a_completer_with_arrivals_is_left_to_it():
    completer = ScriptedCompleter(list("xyz"))
    assert isinstance(completer, ArrivingCompleter)
    assert not isinstance(Batching(), ArrivingCompleter)
    seen = []
    asyncio.run(
        complete_each(completer, requests_of(*"abc"), lambda *arrival: seen.append(arrival[0]), 1)
    )
    assert seen == [0, 1, 2]


def test_too_few_completions_are_an_error():
    with pytest.raises(ValueError, match="gave 2 completions for 3 requests"):
        asyncio.run(complete_each(Batching(1), requests_of(*"abc"), lambda *arrival: None))


def test_gather_keeps_order_and_cancels_the_others_at_a_failure():
    ended = []

    async def work(name: str, seconds: float, is_bad: bool = False) -> str:
        try:
            await asyncio.sleep(seconds)
            if is_bad:
                raise KeyError(name)
            return name
        finally:
            ended.append(name)

    assert asyncio.run(gather([work("a", 0.02), work("b", 0)])) == ["a", "b"]
    ended.clear()
    with pytest.raises(KeyError, match="bad"):
        asyncio.run(gather([work("slow", 60), work("bad", 0, is_bad=True), work("slow too", 60)]))
    assert sorted(ended) == ["bad", "slow", "slow too"]
