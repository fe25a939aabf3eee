import asyncio

import pytest

from triax.llm.ask import Reply
from triax.reasoning.by_question_type import ByQuestionType
from triax.reasoning.synthesize import Reader, Short
from triax.records.evidence import Evidence
from triax.records.question_types import TypeDecision
from triax.records.questions import Question
from triax.records.usage import Usage

POLICY = {"bridge": ["sparql", "steps"], "otherwise": ["steps", "sparql"]}


class Kinds:
    """The kind of a question is its text."""

    async def classify(self, questions):
        return [TypeDecision(one.text, None, Usage(1, 0, 10)) for one in questions]


class Says:
    """Answers by question id; notes whom it was asked about."""

    def __init__(self, **answers):
        self.answers, self.asked = answers, []

    async def read(self, items):
        self.asked.append([question.id for question, _ in items])
        return [self.answers[question.id] for question, _ in items]


def said(text, **more):
    return Reply(Short(text), Usage(1, 0, 5, 1), f"FINAL ANSWER: {text}", **more)


UNREADABLE = Reply(None, Usage(1), "words", "unreadable: no line")
FAILED = Reply(None, Usage(1), None, "down", True)


def read(sparql, steps, *questions):
    readers = {"sparql": Says(**sparql), "steps": Says(**steps)}
    reader = ByQuestionType(Kinds(), readers, POLICY)
    assert isinstance(reader, Reader)
    items = [(Question(name, kind), Evidence()) for name, kind in questions]
    return asyncio.run(reader.read(items)), readers


def test_each_kind_goes_to_its_reader_all_questions_at_once():
    found, readers = read(
        {"a": said("A"), "b": said("B")},
        {"c": said("C")},
        ("a", "bridge"),
        ("c", "inference"),
        ("b", "bridge"),
    )
    assert [one.value.text for one in found] == ["A", "C", "B"]
    assert readers["sparql"].asked == [["a", "b"]] and readers["steps"].asked == [["c"]]
    # One call of the classifier, one of the reader.
    assert found[0].usage == Usage(2, 0, 15, 1)


def test_where_one_abstains_or_cannot_be_read_the_next_is_asked():
    found, readers = read(
        {"a": said(None), "b": UNREADABLE},
        {"a": said("A"), "b": said(None)},
        ("a", "bridge"),
        ("b", "bridge"),
    )
    assert readers["steps"].asked == [["a", "b"]]
    assert [one.value for one in found] == [Short("A"), Short(None)]
    assert found[0].usage.calls == 3 and found[1].error == ""


def test_an_abstention_is_kept_over_an_answer_that_cannot_be_read():
    found, _ = read({"a": said(None)}, {"a": UNREADABLE}, ("a", "bridge"))
    assert found[0].value == Short(None) and found[0].usage.calls == 3


def test_r03_a_failed_call_is_left_for_a_later_run():
    answers = {"a": FAILED, "b": said(None)}
    found, readers = read(answers, {"b": FAILED}, ("a", "bridge"), ("b", "bridge"))
    assert readers["steps"].asked == [["b"]]
    assert [(one.value, one.is_failed, one.error) for one in found] == [(None, True, "down")] * 2


@pytest.mark.parametrize(
    "policy",
    [
        {"bridge": ["sparql"]},
        {"otherwise": []},
        {"otherwise": ["tree"]},
        {},
        {"bridge": [], "otherwise": ["sparql"]},
    ],
)
def test_a_policy_needs_known_readers(policy):
    with pytest.raises(ValueError, match="policy names"):
        ByQuestionType(Kinds(), {"sparql": Says()}, policy)


def test_r09_no_question():
    assert read({}, {})[0] == []
