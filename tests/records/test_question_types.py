import asyncio

import pytest

from triax.records.question_types import (
    QUESTION_TYPES,
    TypeClassifier,
    TypeDecision,
    gold_type,
)
from triax.records.questions import Question


@pytest.mark.parametrize(
    ("kind", "wanted"),
    [
        *((one, one) for one in QUESTION_TYPES),
        ("compositional", "bridge"),
        ("2hop", "bridge"),
        ("4hop3", "bridge"),
        ("None", None),
        ("", None),
        ("yes_no", None),
    ],
)
def test_the_kinds_of_the_data_sets(kind, wanted):
    assert gold_type(kind) == wanted


def test_what_classifies_is_a_classifier():
    class Bridges:
        async def classify(self, questions):
            return [TypeDecision("bridge") for _ in questions]

    assert isinstance(Bridges(), TypeClassifier)
    [found] = asyncio.run(Bridges().classify([Question("q", "Who?")]))
    assert (found.kind, found.probability, found.usage.calls) == ("bridge", None, 0)
