import asyncio

import numpy as np

from triax.records.questions import Question
from triax.routing.trained import TrainedRouter


class Reader:
    config = {"threshold": 0.2}

    def read(self, questions):
        return np.array([[0.5, 0.6], [0.5, 0.75], [0.9, 0.1]])[: len(questions)]


QUESTIONS = [Question(f"q{n}", "?") for n in range(3)]


def test_the_graph_must_be_better_by_the_threshold():
    found = asyncio.run(TrainedRouter(Reader()).route(QUESTIONS))
    assert [one.route for one in found] == ["vanilla", "graph", "vanilla"]
    assert (found[1].p_vanilla, found[1].p_graph) == (0.5, 0.75)


def test_another_threshold_can_be_asked_for():
    found = asyncio.run(TrainedRouter(Reader(), threshold=0.0).route(QUESTIONS))
    assert [one.route for one in found] == ["graph", "graph", "vanilla"]


def test_no_questions():
    assert asyncio.run(TrainedRouter(Reader()).route([])) == []
