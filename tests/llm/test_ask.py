import asyncio

import pytest

from triax.llm.ask import Unreadable, ask, conversation
from triax.llm.scripted import ScriptedCompleter
from triax.records.completions import Completion, CompletionRequest, Message
from triax.records.usage import Usage


def request(text="Q", **options):
    return CompletionRequest((Message("user", text),), **options)


def number(_, completion):
    if not completion.text.isdigit():
        raise Unreadable("no digits")
    return int(completion.text)


def run(completer, requests, **options):
    return asyncio.run(ask(completer, requests, number, **options))


class Recorded:
    """Gives completions as they are, and keeps the batches."""

    model = "recorded"

    def __init__(self, *completions):
        self.completions, self.batches = list(completions), []

    async def complete(self, requests):
        self.batches.append(list(requests))
        return [self.completions.pop(0) for _ in requests]


def test_all_in_one_batch_in_order():
    completer = Recorded(Completion("1"), Completion("2"))
    assert [reply.value for reply in run(completer, [request("a"), request("b")])] == [1, 2]
    assert len(completer.batches) == 1


def test_r26_what_cannot_be_read_is_asked_once_more_with_the_fault():
    completer = Recorded(Completion("x"), Completion("2"), Completion("1"))
    one, two = run(completer, [request("a", stage="s", question_id="q", seed=3), request("b")])
    assert (one.value, one.text, one.error) == (1, "1", "")
    assert two.value == 2
    [again] = completer.batches[1]
    assert [turn.role for turn in again.messages] == ["user", "assistant", "user"]
    assert [turn.content for turn in again.messages[:2]] == ["a", "x"]
    assert again.messages[2].content == (
        "This cannot be read: no digits. Answer again in the asked form only."
    )
    assert (again.stage, again.question_id, again.seed) == ("s", "q", 3)


def test_r26_an_answer_that_stays_unreadable_has_no_value():
    completer = Recorded(Completion("x"), Completion("y"))
    [reply] = run(completer, [request()])
    assert (reply.value, reply.text, reply.error) == (None, "y", "unreadable: no digits")
    assert not reply.is_failed
    assert len(completer.batches) == 2


@pytest.mark.parametrize("retries", [0, 1, 3])
def test_the_number_of_retries_is_bounded(retries):
    completer = ScriptedCompleter(["x"] * 9)
    [reply] = run(completer, [request()], max_retries=retries)
    assert len(completer.requests) == reply.usage.calls == retries + 1
    assert len(completer.requests[-1].messages) == 1 + 2 * retries


def test_usage_is_summed_over_the_retries():
    completer = Recorded(
        Completion("x", "stop", 10, 2, 0.5, is_cached=True), Completion("1", "stop", 30, 1, 0.25)
    )
    [reply] = run(completer, [request()])
    assert reply.usage == Usage(2, 1, 40, 3, 0.75)


def test_r15_a_failed_call_is_not_made_again():
    completer = Recorded(Completion(None, "error", error="401"), Completion("2"))
    failed, fine = run(completer, [request("a"), request("b")])
    assert (failed.value, failed.text, failed.error) == (None, None, "401")
    assert failed.is_failed and not fine.is_failed
    assert failed.usage.calls == 1
    assert fine.value == 2
    assert len(completer.batches) == 1


def test_a_retry_that_fails_outright_is_a_failed_call():
    [reply] = run(Recorded(Completion("x"), Completion(None, "error")), [request()])
    assert (reply.value, reply.error, reply.is_failed) == (None, "no text, no reason", True)
    assert reply.usage.calls == 2


def test_nothing_to_ask_makes_no_call():
    completer = Recorded()
    assert run(completer, []) == []
    assert completer.batches == []


def test_a_completer_that_gives_too_few_is_a_fault_of_the_program():
    class Short:
        model = "short"

        async def complete(self, requests):
            return []

    with pytest.raises(ValueError, match="shorter"):
        run(Short(), [request()])


def test_conversation():
    turns = conversation("system", (("asked", "answered"),), "user")
    assert [(turn.role, turn.content) for turn in turns] == [
        ("system", "system"),
        ("user", "asked"),
        ("assistant", "answered"),
        ("user", "user"),
    ]
