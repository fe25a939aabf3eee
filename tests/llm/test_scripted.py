import asyncio

import pytest

from triax.llm.scripted import ScriptedCompleter
from triax.records.completions import CompletionRequest, Message
from triax.records.verbs import Completer


def ask(text: str) -> CompletionRequest:
    return CompletionRequest((Message("system", "two words"), Message("user", text)))


def complete(completer, *texts):
    return asyncio.run(completer.complete([ask(text) for text in texts]))


def test_a_list_answers_in_order_over_calls():
    completer = ScriptedCompleter(["one", "two and more", "three"])
    assert isinstance(completer, Completer)
    assert [completion.text for completion in complete(completer, "a", "b c")] == [
        "one",
        "two and more",
    ]
    [third] = complete(completer, "d")
    assert third.text == "three"
    assert [request.messages[-1].content for request in completer.requests] == ["a", "b c", "d"]
    assert (third.prompt_tokens, third.completion_tokens) == (3, 1)


def test_a_function_answers_by_the_request():
    completer = ScriptedCompleter(lambda request: request.messages[-1].content.upper(), "upper")
    assert [completion.text for completion in complete(completer, "a", "b")] == ["A", "B"]
    assert completer.model == "upper" and completer.identity["model"] == "upper"


def test_raise_entries_are_failed_calls():
    completer = ScriptedCompleter(["fine", "__RAISE__", "__RAISE__: server on fire", "fine again"])
    fine, plain, told, again = complete(completer, *"abcd")
    assert (fine.text, again.text) == ("fine", "fine again")
    assert plain.text is None and plain.error == "scripted failure"
    assert told.finish_reason == "error" and told.error == "server on fire"


def test_a_call_beyond_the_script_is_a_failed_call():
    one, two = complete(ScriptedCompleter(["only"]), "a", "b")
    assert one.text == "only" and two.text is None
    assert "has 1 answers, call 2 came" in two.error


def test_what_the_function_raises_goes_through():
    def answer(request):
        raise AssertionError("not asked for")

    with pytest.raises(AssertionError, match="not asked for"):
        complete(ScriptedCompleter(answer), "a")
