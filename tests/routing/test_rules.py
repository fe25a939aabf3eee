import asyncio

import pytest

from triax.records.questions import Question
from triax.records.verbs import Router
from triax.routing.rules import (
    CountRouter,
    FixedRouter,
    KindRouter,
    OracleRouter,
    RandomRouter,
    count_names,
    count_words,
)

QUESTIONS = [
    Question("q1", "Who wrote Brand?", kind="bridge"),
    Question("q2", "Which film came out first, Blind Shaft or The Mask of Fu Manchu?", kind="cmp"),
]


def routes(router):
    assert isinstance(router, Router)
    return [one.route for one in asyncio.run(router.route(QUESTIONS))]


def test_one_way_for_all():
    assert routes(FixedRouter("graph")) == ["graph", "graph"]


def test_counts_decide():
    assert routes(CountRouter(count_words, 5)) == ["vanilla", "graph"]
    assert routes(CountRouter(count_names, 2)) == ["vanilla", "graph"]
    assert routes(CountRouter(count_names, 1)) == ["graph", "graph"]


def test_types_decide():
    assert routes(KindRouter({"bridge"})) == ["graph", "vanilla"]


def test_labels_decide_and_what_has_none_goes_the_cheap_way():
    assert routes(OracleRouter({"q1": True})) == ["graph", "vanilla"]
    assert routes(OracleRouter({"q2": False}, otherwise="graph")) == ["graph", "vanilla"]


def test_chance_depends_on_id_and_seed_alone():
    many = [Question(f"q{n}", "?") for n in range(1000)]
    first = asyncio.run(RandomRouter(0.3, seed=1).route(many))
    again = asyncio.run(RandomRouter(0.3, seed=1).route(many[::-1]))
    assert first == again[::-1]
    assert sum(one.route == "graph" for one in first) / 1000 == pytest.approx(0.3, abs=0.05)
    assert routes(RandomRouter(0.0)) == ["vanilla", "vanilla"]


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("Who wrote Brand?", 1),
        ("Are Vertigo and Rear Window both by Alfred Hitchcock?", 3),
        ("Which film came out first, Blind Shaft or The Mask of Fu Manchu?", 2),
        ('What year was the director of "Duck Soup" born, 1898?', 2),
        ("Where was the Duchess of Alba born?", 1),
        ("what is this?", 0),
        ("", 0),
    ],
)
def test_names_are_counted_by_their_spelling(text, count):
    assert count_names(text) == count


def test_words():
    assert count_words("Who wrote Brand?") == 3
    assert count_words("") == 0
