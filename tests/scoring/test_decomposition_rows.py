"""Tests of triax.scoring.decomposition_rows."""

import pytest

from triax.scoring.decomposition_rows import score_decomposition_rows

CHAIN = [["Brand", "author", "?1"], ["?1", "place of birth", "?2"]]


def row(number, predicted, gold=(), steps=(), error=""):
    return {
        "id": f"q{number}",
        "predicted": predicted,
        "gold": list(gold),
        "steps": list(steps),
        "error": error,
    }


ROWS = [
    row(1, [["brand", "the author", "?x"], ["?x", "place of birth", "?y"]], CHAIN),  # equal
    row(2, [["Brand", "writer", "?x"], ["?x", "born in", "?y"]], CHAIN),  # equal arguments
    row(3, None, CHAIN, error="unreadable"),
    row(4, [["a", "b", "?1"], ["c", "?1", "?2"]], (), ["who?", "where is #1"]),  # same links
    row(5, [["a", "b", "?1"]], (), ["who?", "where is #1"]),
]


def test_each_measure_is_over_the_questions_that_have_its_gold():
    summary, rows = score_decomposition_rows(ROWS, num_resamples=100)
    assert summary["decompose/equal"] == pytest.approx(1 / 3)
    assert summary["decompose/equal_arguments"] == pytest.approx(2 / 3)
    assert summary["decompose/structure"] == summary["decompose/num_triplets"] == 1 / 2
    assert summary["decompose/parsed"] == pytest.approx(4 / 5)
    assert summary["count/gold_triplets"] == 3 and summary["count/gold_steps"] == 2
    assert summary["count/errors"] == 1
    assert [one["parsed"] for one in rows] == [1, 1, 0, 1, 1]
    assert "structure" not in rows[0] and "equal" not in rows[3]
    assert summary["decompose/equal/low"] == 0.0 < summary["decompose/equal/high"]


def test_without_steps_there_is_no_structure():
    summary, _ = score_decomposition_rows(ROWS[:1], num_resamples=10)
    assert "decompose/structure" not in summary and summary["decompose/equal"] == 1.0


def test_no_rows_are_refused():
    with pytest.raises(ValueError, match="no rows"):
        score_decomposition_rows([])
