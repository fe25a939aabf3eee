import asyncio

from triax.pipelines.hybrid import Hybrid
from triax.records.questions import Question
from triax.records.routes import Routing
from triax.records.trace_json import trace_to_json
from triax.records.traces import Trace
from triax.records.usage import Usage
from triax.records.verbs import Pipeline

QUESTIONS = [Question(f"q{n}", f"text {n}") for n in range(4)]


class Routes:
    name = "routes"

    def __init__(self, *routings):
        self.routings = routings

    async def route(self, questions):
        return list(self.routings)


class Answers:
    """Says its name and what it was asked to search."""

    def __init__(self, name):
        self.name, self.asked = name, []

    async def answer(self, questions):
        self.asked += [one.id for one in questions]
        return [
            Trace(one.id, one.text, self.name, f"{self.name}: {one.searched}", usage=Usage(calls=1))
            for one in questions
        ]


class Rewrites:
    def __init__(self, text="new"):
        self.asked, self.text = [], text

    async def rewrite(self, questions):
        self.asked += [one.id for one in questions]
        return [(self.text and f"{one.text} {self.text}", Usage(calls=2)) for one in questions]


ROUTINGS = (
    Routing("graph", 0.1, 0.9),
    Routing("vanilla", 0.8, 0.2),
    Routing("graph", 0.3, 0.5),
    Routing("graph"),
)


def test_each_side_gets_its_questions_in_one_batch_and_order_is_kept():
    vanilla, graph = Answers("v"), Answers("g")
    hybrid = Hybrid(Routes(*ROUTINGS), vanilla, graph)
    assert isinstance(hybrid, Pipeline)
    traces = asyncio.run(hybrid.answer(QUESTIONS))
    assert vanilla.asked == ["q1"] and graph.asked == ["q0", "q2", "q3"]
    assert [one.question_id for one in traces] == ["q0", "q1", "q2", "q3"]
    assert [one.answer for one in traces] == ["g: text 0", "v: text 1", "g: text 2", "g: text 3"]
    assert {one.pipeline for one in traces} == {"hybrid"}
    assert trace_to_json(traces[2])["routing"] == {
        "route": "graph",
        "p_vanilla": 0.3,
        "p_graph": 0.5,
    }


def test_only_uncertain_graph_questions_are_rewritten():
    rewriter = Rewrites()
    hybrid = Hybrid(Routes(*ROUTINGS), Answers("v"), Answers("g"), rewriter, rewrite_threshold=0.6)
    traces = asyncio.run(hybrid.answer(QUESTIONS))
    assert rewriter.asked == ["q2"]
    assert [one.answer for one in traces][2] == "g: text 2 new"
    assert traces[2].question == "text 2"  # the reader is asked the question itself
    assert [one.usage.calls for one in traces] == [1, 1, 3, 1]


def test_a_failed_rewriting_leaves_the_question_as_it_was():
    hybrid = Hybrid(Routes(*ROUTINGS), Answers("v"), Answers("g"), Rewrites(""))
    traces = asyncio.run(hybrid.answer(QUESTIONS))
    assert traces[2].answer == "g: text 2" and traces[2].usage.calls == 3


def test_no_questions():
    assert asyncio.run(Hybrid(Routes(), Answers("v"), Answers("g")).answer([])) == []
