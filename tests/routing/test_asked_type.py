import asyncio

import pytest

from triax.llm.scripted import RAISE, ScriptedCompleter
from triax.records.question_types import QUESTION_TYPES, TypeClassifier
from triax.records.questions import Question
from triax.routing.asked_type import SHOTS, SYSTEM, AskedTypes, read_type


def test_each_question_is_asked_by_itself():
    model = ScriptedCompleter(["comparison", "no idea", f"{RAISE} down"])
    asked = AskedTypes(model)
    assert isinstance(asked, TypeClassifier)
    found = asyncio.run(asked.classify([Question(name, f"{name}?") for name in "abc"]))
    assert [one.kind for one in found] == ["comparison", "bridge", "bridge"]
    assert [one.usage.calls for one in found] == [1, 1, 1] and asked.num_unread == 2
    request = model.requests[0]
    assert request.messages[0].content == SYSTEM
    assert request.messages[-1].content == "Question: a?"
    assert (request.stage, request.question_id, request.temperature) == ("question_type", "a", 0.0)
    assert [answer for _, answer in SHOTS] == list(QUESTION_TYPES)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("bridge", "bridge"),
        ("Bridge Comparison", "bridge_comparison"),
        ("bridge_comparison\n", "bridge_comparison"),
        ("The kind: inference.", "inference"),
        ("<think>", None),
        ("", None),
    ],
)
def test_what_is_read(text, kind):
    assert read_type(text) == kind
