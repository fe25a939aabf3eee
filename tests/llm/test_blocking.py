import asyncio

from triax.llm.blocking import complete_now, run_now
from triax.llm.scripted import ScriptedCompleter
from triax.records.completions import CompletionRequest, Message


def request(text):
    return CompletionRequest((Message("user", text),))


def test_calls_are_completed_in_order_inside_and_outside_of_a_loop():
    model = ScriptedCompleter(lambda asked: asked.messages[-1].content.upper())
    wanted = ["A", "B"]

    async def inside():
        return [one.text for one in complete_now(model, [request("a"), request("b")])]

    assert [one.text for one in complete_now(model, [request("a"), request("b")])] == wanted
    assert asyncio.run(inside()) == wanted


def test_without_a_request_nobody_is_asked():
    class Never:
        model = "never"

        async def complete(self, requests):
            raise AssertionError("asked in vain")

    assert complete_now(Never(), []) == []


def test_an_error_comes_through():
    async def fails():
        raise ValueError("as it was")

    async def inside():
        return run_now(fails())

    for call in (lambda: run_now(fails()), lambda: asyncio.run(inside())):
        try:
            call()
        except ValueError as error:
            assert str(error) == "as it was"
        else:
            raise AssertionError("no error")
