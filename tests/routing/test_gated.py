import asyncio

import pytest

from triax.records.documents import Chunk
from triax.records.evidence import Evidence, ScoredChunk
from triax.records.questions import Question
from triax.records.readings import Reading
from triax.records.routes import RouterExample
from triax.records.verbs import Router
from triax.routing.first_search import FirstSearch
from triax.routing.gated import RetrievalGate, SearchReader, fit_gate
from triax.routing.trained import TrainedRouter


class Leads:
    """The best chunk leads by the hundredths that end the query: "q 7" by 0.07."""

    def search(self, groups, num_chunks):
        leads = [int(text.split()[-1]) / 100 for (text,) in groups]
        chunks = [Chunk(f"c{n}", "d", "text", "") for n in range(2)]
        return [
            Evidence((ScoredChunk(chunks[0], 0.5 + lead), ScoredChunk(chunks[1], 0.5)))
            for lead in leads
        ]


class Reads:
    name = "reads"

    def read(self, requests, *, allows_verdicts=False):
        return [
            Reading("x", 0, 0, 1, 1.0, 0.9, int(one.query.split()[-1]) / 10) for one in requests
        ]


def questions(*numbers):
    return [Question(f"q{n}", f"q {n}") for n in numbers]


def example(number, needs_graph):
    return RouterExample(
        f"q{number}", f"q {number}", "", not needs_graph, needs_graph, None, None, 1
    )


def routes(router, *numbers):
    return [one.route for one in asyncio.run(router.route(questions(*numbers)))]


def test_what_leads_too_little_goes_to_the_graph():
    gate = RetrievalGate(Leads(), "margin", 0.055)
    assert isinstance(gate, Router)
    assert routes(gate, 2, 9, 5, 6) == ["graph", "vanilla", "graph", "vanilla"]
    assert asyncio.run(gate.route([])) == []


def test_a_rewritten_question_is_searched_as_it_was_rewritten():
    gate = RetrievalGate(Leads(), "margin", 0.055)
    (found,) = asyncio.run(gate.route([Question("q", "q 9", search="q 1")]))
    assert (found.route, found.p_vanilla) == ("graph", None)


def test_what_a_reader_sees_is_the_probability_of_vanilla():
    gate = RetrievalGate(Leads(), "p_here", 0.5, reader=Reads())
    found = asyncio.run(gate.route(questions(4, 5)))
    assert [(one.route, one.p_vanilla, one.p_graph) for one in found] == [
        ("graph", 0.4, None),
        ("vanilla", 0.5, None),
    ]


def test_signals_that_are_not_there():
    with pytest.raises(Exception, match="signal"):
        RetrievalGate(Leads(), "score")
    with pytest.raises(ValueError, match="'p_right' is a reader's"):
        RetrievalGate(Leads(), "p_right")


def test_the_threshold_that_separates_best():
    examples = [example(n, n < 4) for n in range(10)]
    gate = fit_gate(RetrievalGate(Leads(), "margin"), examples)
    assert gate.threshold == pytest.approx(0.035)  # between leads of 0.03 and 0.04
    assert routes(gate, *range(10)) == ["graph"] * 4 + ["vanilla"] * 6


def test_where_nothing_needs_the_graph_nothing_is_sent():
    gate = fit_gate(RetrievalGate(Leads(), "margin"), [example(n, False) for n in range(5)])
    assert routes(gate, *range(5)) == ["vanilla"] * 5


def test_fitting_to_nothing():
    with pytest.raises(ValueError, match="no margins"):
        fit_gate(RetrievalGate(Leads(), "margin"), [])


def test_boosting_learns_a_band_that_no_threshold_can():
    pytest.importorskip("sklearn")
    examples = [example(n, 5 <= n < 10) for n in range(15)] * 4
    reader = SearchReader(FirstSearch(Leads(), 2)).fit(examples, examples)
    router = TrainedRouter(reader, name="gated_boosted")
    assert routes(router, 1, 7, 12) == ["vanilla", "graph", "vanilla"]


def test_a_side_that_is_always_good_needs_no_model():
    pytest.importorskip("sklearn")
    both = [RouterExample(f"q{n}", f"q {n}", "", n > 4, True, None, None, 1) for n in range(10)]
    p = SearchReader(FirstSearch(Leads(), 2)).fit(both, both).read(["q 1", "q 8"])
    assert p[:, 1].tolist() == [1.0, 1.0] and p[0, 0] < 0.5 < p[1, 0]


def test_reading_before_fitting():
    with pytest.raises(RuntimeError, match="not fitted"):
        SearchReader(FirstSearch(Leads())).read(["q 1"])
