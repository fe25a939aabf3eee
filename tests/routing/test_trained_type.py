import asyncio

import numpy as np

from triax.records.question_types import TypeClassifier
from triax.records.questions import Question
from triax.routing.trained_type import TrainedTypes


class Reader:
    """Probabilities by hand: bridge, comparison, bridge_comparison, inference."""

    rows = {"a": [0.1, 0.2, 0.6, 0.1], "b": [0.4, 0.1, 0.1, 0.4], "c": [0.0, 0.0, 0.25, 0.75]}

    def __init__(self):
        self.calls = 0

    def read(self, questions):
        self.calls += 1
        return np.array([self.rows[text] for text in questions])


def test_the_most_probable_type_is_taken():
    reader = Reader()
    types = TrainedTypes(reader)
    assert isinstance(types, TypeClassifier)
    found = asyncio.run(types.classify([Question(text, text) for text in "abc"]))
    assert [(one.kind, one.probability) for one in found] == [
        ("bridge_comparison", 0.6),
        ("bridge", 0.4),  # as probable as inference, which comes later
        ("inference", 0.75),
    ]
    assert reader.calls == 1
    assert {one.usage.calls for one in found} == {0}


def test_no_question_reads_nothing():
    reader = Reader()
    assert asyncio.run(TrainedTypes(reader).classify([])) == []
    assert reader.calls == 0
