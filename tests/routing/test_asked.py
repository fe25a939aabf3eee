import asyncio

import pytest

from triax.records.completions import Completion
from triax.records.questions import Question
from triax.routing.asked import AskedRouter


class Says:
    """A model with prepared answers, which keeps what it was asked."""

    model = "says"

    def __init__(self, *texts):
        self.texts, self.asked = texts, []

    async def complete(self, requests):
        self.asked += requests
        return [Completion(text) for text in self.texts]


@pytest.mark.parametrize(
    ("text", "route"),
    [
        ("graph", "graph"),
        ("Vanilla.", "vanilla"),
        ("vanilla, not graph", "vanilla"),
        ("I say Graph", "graph"),
        ("no idea", "vanilla"),
        (None, "vanilla"),
    ],
)
def test_the_first_side_that_is_named_counts(text, route):
    model = Says(text)
    (found,) = asyncio.run(AskedRouter(model).route([Question("q1", "Who wrote Brand?")]))
    assert (found.route, found.p_graph) == (route, None)
    (request,) = model.asked
    assert request.messages[-1].content.endswith("Who wrote Brand?")
    assert (request.stage, request.question_id) == ("route", "q1")


def test_a_lost_answer_goes_where_it_is_told():
    (found,) = asyncio.run(AskedRouter(Says("?"), otherwise="graph").route([Question("q", "?")]))
    assert found.route == "graph"
