import asyncio

import pytest

from triax.llm.ask import Unreadable
from triax.llm.scripted import ScriptedCompleter
from triax.reasoning.gist import SHOTS, Decision, GistDecider, read_decision
from triax.records.completions import Completion
from triax.records.questions import Question

QUESTION = Question("q", "Where was the director of Vertigo born?")


def decide(answers, gist=()):
    model = ScriptedCompleter(answers)
    [reply] = asyncio.run(GistDecider(model).decide([QUESTION], [gist]))
    return reply, model


def test_the_prompt_shows_the_facts_and_the_question():
    reply, model = decide(["search: Where was Hitchcock born?"], ["Vertigo directed by Hitchcock"])
    assert reply.value == Decision("Where was Hitchcock born?") and reply.usage.calls == 1
    [request] = model.requests
    assert request.messages[0].content == (
        "You are given facts and a question. If the facts are enough to answer the question, "
        "write: enough. If not, write: search: and a short question that asks for the missing fact."
    )
    assert request.messages[-1].content == (
        "Facts:\nVertigo directed by Hitchcock\n\nQuestion: Where was the director of Vertigo born?"
    )
    assert (request.stage, request.question_id) == ("decide", "q")


def test_without_facts_it_says_so():
    assert decide(["enough"])[1].requests[0].messages[-1].content.startswith("Facts:\nnone\n")


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("enough", None),
        ("**Enough**, since it is stated.", None),
        ("Search: **Who?**", "Who?"),
        ("It is not enough. search: Who wrote it?\nmore", "Who wrote it?"),
        ("<think>search: no</think>enough", None),
        *((answer, None if answer == "enough" else answer[8:]) for _, answer in SHOTS),
    ],
)
def test_what_is_read(text, query):
    assert read_decision(Completion(text)) == Decision(query)


@pytest.mark.parametrize("text", ["", "yes", "search:", "I have had more than enough", "<think>x"])
def test_r26_what_says_neither_is_unreadable(text):
    with pytest.raises(Unreadable, match="neither `enough` nor"):
        read_decision(Completion(text))
