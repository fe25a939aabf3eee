import asyncio
from typing import NamedTuple

from triax.reasoning.decompose import Decomposer
from triax.reasoning.trained_decompose import TrainedDecomposer, Writer
from triax.records.query_triplets import QueryTriplet
from triax.records.questions import Question
from triax.records.usage import Usage


class Written(NamedTuple):
    operator: str
    triplets: tuple


class Echo:
    """Writes one triplet about the question itself."""

    def __init__(self):
        self.calls = []

    def write(self, questions):
        self.calls.append(list(questions))
        return [Written("none", (QueryTriplet.parse(one, "is", "?1"),)) for one in questions]


def decompose(*texts):
    writer = Echo()
    decomposer = TrainedDecomposer(completer=None, writer=writer)
    assert isinstance(decomposer, Decomposer)
    assert isinstance(writer, Writer)
    questions = [Question(f"q{n}", text) for n, text in enumerate(texts)]
    return asyncio.run(decomposer.decompose(questions)), writer


def test_all_questions_in_one_batch_and_in_order():
    replies, writer = decompose("A", "B")
    assert writer.calls == [["A", "B"]]
    assert [str(reply.value[0]) for reply in replies] == ["A | is | ?1", "B | is | ?1"]
    assert [reply.text for reply in replies] == ["A | is | ?1", "B | is | ?1"]


def test_it_costs_no_call():
    [reply], _ = decompose("A")
    assert reply.usage == Usage()
    assert not reply.error and not reply.is_failed


def test_nothing_is_asked_of_no_question():
    replies, writer = decompose()
    assert (replies, writer.calls) == ([], [])
