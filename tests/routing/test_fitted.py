import asyncio

import numpy as np
import pytest

from triax.records.questions import Question
from triax.records.routes import RouterExample
from triax.routing.fitted import TfidfReader, fit_count, fit_kinds
from triax.routing.rules import count_words
from triax.routing.trained import TrainedRouter
from triax.scoring.thresholds import Selection


def example(number, text, needs_graph):
    return RouterExample(f"q{number}", text, "", not needs_graph, needs_graph, None, None, 1)


EXAMPLES = [
    example(n, f"who is the mother of the director of film {n}", True)
    if n % 3 == 0
    else example(n, f"when did film {n} come out", False)
    for n in range(60)
]


def test_the_least_count_that_separates_best():
    router = fit_count(count_words, EXAMPLES)
    assert 6 < router.least <= 10  # 6 words against 10
    found = asyncio.run(router.route([Question(one.id, one.question) for one in EXAMPLES]))
    assert [one.route == "graph" for one in found] == [one.needs_graph for one in EXAMPLES]


def test_of_equal_counts_the_one_that_sends_fewer():
    assert fit_count(count_words, EXAMPLES).least == 10


def test_no_more_than_the_share_that_is_allowed():
    assert fit_count(count_words, EXAMPLES, Selection(max_graph_ratio=0.3)).least == 11


def test_where_nothing_needs_the_graph_nothing_is_sent():
    easy = [one for one in EXAMPLES if not one.needs_graph]
    router = fit_count(count_words, easy)
    found = asyncio.run(router.route([Question(one.id, one.question) for one in easy]))
    assert not any(one.route == "graph" for one in found)


def kinds(**shares):
    """For each kind as many questions as given, those that need the graph first."""
    return [
        RouterExample(f"{kind}{n}", "", kind, n >= needing, n < needing, None, None, 1)
        for kind, (needing, number) in shares.items()
        for n in range(number)
    ]


def test_types_that_need_the_graph_go_there():
    examples = kinds(bridge=(8, 10), comparison=(1, 10), inference=(3, 4))
    # F1 of bridge alone is 16 / 22, with inference 22 / 26 (11 of 14 sent, 12 need it).
    assert fit_kinds(examples, Selection("f1")).graph_kinds == {"bridge", "inference"}
    # 10 of 24 questions are bridge, 14 are either.
    assert fit_kinds(examples, Selection("f1", 0.5)).graph_kinds == {"bridge"}


def test_no_type_is_sent_for_nothing():
    assert fit_kinds(kinds(comparison=(0, 3))).graph_kinds == frozenset()
    with pytest.raises(ValueError, match="no examples"):
        fit_kinds([])


def test_words_are_learnt():
    pytest.importorskip("sklearn")
    reader = TfidfReader().fit(EXAMPLES[:40], EXAMPLES[40:])
    router = TrainedRouter(reader, name="tfidf")
    questions = [
        Question("a", "who is the mother of the director of film 99"),
        Question("b", "when did film 98 come out"),
    ]
    assert [one.route for one in asyncio.run(router.route(questions))] == ["graph", "vanilla"]


def test_a_side_that_is_always_good_needs_no_model():
    pytest.importorskip("sklearn")
    both = [
        RouterExample(one.id, one.question, "", one.vanilla, True, None, None, 1)
        for one in EXAMPLES
    ]
    p = TfidfReader().fit(both[:40], both[40:]).read(["when did film 1 come out"])
    assert p.shape == (1, 2) and p[0, 1] == 1.0 and p[0, 0] > 0.5


def test_reading_before_fitting():
    with pytest.raises(RuntimeError, match="not fitted"):
        TfidfReader().read(["?"])
    with pytest.raises(ValueError, match="no examples"):
        fit_count(count_words, [])
    assert np.isclose(TfidfReader().config["threshold"], 0.0)
