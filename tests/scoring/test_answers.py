"""Tests of triax.scoring.answers."""

import doctest

import pytest

from triax.records.questions import Question
from triax.scoring import answers
from triax.scoring.answers import (
    best_exact_match,
    best_f1,
    is_exact_match,
    normalize_answer,
    score_answers,
    token_f1,
)


def test_examples_in_the_docstrings():
    results = doctest.testmod(answers)
    assert results.attempted >= 6 and results.failed == 0


@pytest.mark.parametrize(
    ("first", "second", "same"),
    [
        ("U.S.", "US", True),
        ("1,000", "1000", True),
        ("-5", "5", True),
        ("Café", "Cafe", False),
        ("The  Beatles ", "beatles", True),
        ("a", "A", True),
        ("Theory", "ory", False),
        ("don’t", "dont", False),
        ("don't", "dont", True),
        ("An apple a day", "apple day", True),
        ("东京", "东京", True),
    ],
)
def test_exact_match_by_the_official_rules(first, second, same):
    assert is_exact_match(first, second) is same


def test_normalisation_of_the_squad_script():
    assert normalize_answer("The quick, brown  fox!") == "quick brown fox"
    assert normalize_answer("well-known") == "wellknown"


@pytest.mark.parametrize(
    ("prediction", "gold", "value"),
    [
        ("A", "a", 0.0),
        ("Tim Burton", "Burton", 2 / 3),
        ("the the cat sat", "cat cat sat", 4 / 5),
        ("x", "y", 0.0),
        ("", "x", 0.0),
        ("yes", "yes", 1.0),
        ("yes", "Yes, it is", 0.0),
        ("no one", "no", 0.0),
        ("noanswer", "x noanswer", 0.0),
    ],
)
def test_f1_by_hand(prediction, gold, value):
    assert token_f1(prediction, gold) == pytest.approx(value)


def test_best_over_aliases_is_taken_apart_for_em_and_f1():
    assert best_exact_match("NYC", ["New York", "nyc"]) == 1.0
    assert best_f1("New York City", ["NYC", "New York"]) == pytest.approx(0.8)
    assert best_f1("x", []) == 0.0


def test_r29_no_answer_scores_nothing_and_is_counted():
    questions = [
        Question("q1", "?", answers=("Paris",)),
        Question("q2", "?", answers=("Rome", "Roma")),
        Question("q3", "?", answers=("a",)),
        Question("q4", "?"),
        Question("q5", "?", answers=("No",)),
    ]
    summary, rows = score_answers(
        {"q1": "Paris, France", "q2": None, "q3": " ", "q4": "x", "q5": "no"}, questions
    )
    assert summary == {
        "answer/scored": 4,
        "answer/unanswered": 2,
        "answer/no_gold": 1,
        "answer/em": 1 / 4,
        "answer/f1": pytest.approx((2 / 3 + 1) / 4),
    }
    assert [row["question_id"] for row in rows] == ["q1", "q2", "q3", "q5"]
    assert rows[1] == {
        "question_id": "q2",
        "prediction": None,
        "answers": ["Rome", "Roma"],
        "em": 0.0,
        "f1": 0.0,
    }


def test_r29_nothing_scored_has_no_mean():
    summary, rows = score_answers({"q": "x"}, [Question("q", "?")])
    assert rows == [] and "answer/em" not in summary and summary["answer/no_gold"] == 1


def test_part_of_a_run_is_refused():
    questions = [Question("q1", "?", answers=("x",)), Question("q2", "?", answers=("x",))]
    with pytest.raises(ValueError, match=r"1 questions have no prediction \(e.g. \['q2'\]\)"):
        score_answers({"q1": "x"}, questions)
    with pytest.raises(ValueError, match=r"1 have no question \(e.g. \['q9'\]\)"):
        score_answers({"q1": "x", "q2": "x", "q9": "x"}, questions)
    with pytest.raises(ValueError, match="1 question ids repeat"):
        score_answers({"q1": "x"}, [questions[0], questions[0]])
