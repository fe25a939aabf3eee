import asyncio

import pytest

from reasoning.golden import check_golden
from triax.llm.ask import Unreadable
from triax.llm.scripted import ScriptedCompleter
from triax.reasoning.follow_up import Asked, Asker, FollowUp, PromptedAsker, read_follow_up
from triax.reasoning.synthesize import Short
from triax.records.completions import Completion
from triax.records.questions import Question

QUESTION = Question("q", "Where was the director of Vertigo born?")


def ask(answers, *asked, **options):
    completer = ScriptedCompleter(answers)
    asker = PromptedAsker(completer, **options)
    assert isinstance(asker, Asker)
    [reply] = asyncio.run(asker.ask([(QUESTION, asked)]))
    return reply, completer


def test_follow_ups_and_answers_are_the_turns_of_a_conversation():
    asked = Asked("Who directed Vertigo?", "Hitchcock"), Asked("Where was he born?", None)
    reply, completer = ask(["Follow up: Where was Alfred Hitchcock born?"], *asked)
    assert reply.value == FollowUp("Where was Alfred Hitchcock born?")
    [request] = completer.requests
    assert (request.stage, request.question_id, request.max_tokens) == ("follow_up", "q", 64)
    check_golden("follow_up", request.messages)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Follow up: Who is he?", FollowUp("Who is he?")),
        ("**Follow-up question 2:** Who is he?", FollowUp("Who is he?")),
        ("Are follow ups needed: Yes.\nFollow up: Who is he?", FollowUp("Who is he?")),
        ("Follow up:\nWho is he?", FollowUp("Who is he?")),
        ("Who is he?", FollowUp("Who is he?")),
        ("<think>Follow up: a?</think>Follow up: b?", FollowUp("b?")),
        # It goes on and invents what it should be told.
        (
            "Follow up: Who?\nIntermediate answer: I\nSo the final answer is: I",
            FollowUp("Who?"),
        ),
        ("So the final answer is: yes", FollowUp(final=Short("yes"))),
        ("So the final answer is:\nPalermo.", FollowUp(final=Short("Palermo"))),
        ("Answer: Palermo", FollowUp(final=Short("Palermo"))),
        (
            "So the final answer is: A\n\nQuestion: next?\nSo the final answer is: B",
            FollowUp(final=Short("A")),
        ),
        ("So the final answer is: unknown", FollowUp(final=Short(None))),
    ],
)
def test_an_answer_is_read_loosely(text, expected):
    assert read_follow_up(Completion(text)) == expected


@pytest.mark.parametrize("text", ["", "Palermo", "Intermediate answer: Palermo", "Follow up:"])
def test_r26_another_form_is_unreadable(text):
    with pytest.raises(Unreadable, match="neither 'Follow up:'"):
        read_follow_up(Completion(text))


def test_r26_an_unreadable_answer_is_asked_again_once():
    reply, _ = ask(["Palermo", "So the final answer is: Palermo"], max_tokens=9)
    assert (reply.value.final, reply.usage.calls) == (Short("Palermo"), 2)


def test_r03_a_failed_call_has_no_value():
    reply, _ = ask(["__RAISE__: down"])
    assert (reply.value, reply.is_failed) == (None, True)
