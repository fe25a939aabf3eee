"""Tests of triax.scoring.cost."""

import pytest

from triax.records.usage import Usage
from triax.scoring.cost import score_cost, weighted_tokens


def test_sums_and_means_by_hand():
    usages = {"q1": Usage(2, 1, 300, 20, 1.5), "q2": Usage(4, 0, 100, 10, 0.5)}
    summary, rows = score_cost(usages, {"q1": 3.0, "q2": 1.0})
    assert rows[0] == {
        "question_id": "q1",
        "calls": 2,
        "cached_calls": 1,
        "prompt_tokens": 300,
        "completion_tokens": 20,
        "weighted_tokens": 380.0,
        "llm_seconds": 1.5,
        "seconds": 3.0,
    }
    assert summary["cost/questions"] == 2
    assert summary["cost/total_calls"] == 6 and summary["cost/calls"] == 3
    assert summary["cost/total_weighted_tokens"] == 520 and summary["cost/weighted_tokens"] == 260
    assert summary["cost/llm_seconds"] == 1.0 and summary["cost/seconds"] == 2.0


def test_weight_of_output_tokens():
    assert weighted_tokens(Usage(prompt_tokens=7, completion_tokens=3)) == 19
    assert weighted_tokens(Usage(prompt_tokens=7, completion_tokens=3), 1.0) == 10


def test_r29_what_is_not_known_is_absent():
    assert score_cost({}) == ({"cost/questions": 0.0}, [])
    summary, rows = score_cost({"q": Usage()})
    assert "cost/seconds" not in summary and "seconds" not in rows[0]
    with pytest.raises(ValueError, match=r"1 questions have only one .*\['q2'\]"):
        score_cost({"q": Usage()}, {"q": 1.0, "q2": 1.0})
