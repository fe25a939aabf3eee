import numpy as np
import pytest

from triax.scoring.routing import area, area_interval, compose, routing_intervals, score_routes

SENT = [True, True, False, False, True]
NEEDED = [True, False, True, False, True]


def test_scores_by_hand():
    found = score_routes(SENT, NEEDED)
    assert found.precision == pytest.approx(2 / 3) and found.recall == pytest.approx(2 / 3)
    assert found.f1 == pytest.approx(2 / 3) and found.graph_ratio == pytest.approx(0.6)
    assert found.objective == pytest.approx(2 / 3) and found.num_questions == 5


def test_always_graph_has_an_objective_that_says_little():
    """At 11% needed: F1 0.198, recall 1, objective 0.6 (the remark on the paper's objective)."""
    needed = [n < 11 for n in range(100)]
    found = score_routes([True] * 100, needed)
    assert found.f1 == pytest.approx(2 * 11 / 111) and found.recall == 1
    assert found.objective == pytest.approx(0.599, abs=1e-3)


def test_nothing_sent_or_nothing_needed():
    assert score_routes([False, False], [True, False]).f1 == 0
    assert score_routes([True, False], [False, False]).recall == 0


def test_the_area_is_that_of_scikit_learn():
    metrics = pytest.importorskip("sklearn.metrics")
    rng = np.random.default_rng(0)
    needed = rng.random(300) < 0.4
    margins = (rng.normal(size=300) + needed).round(1)  # with ties
    expected = metrics.roc_auc_score(needed, margins)
    assert area(margins.tolist(), needed.tolist()) == pytest.approx(expected, abs=1e-12)
    low, high = area_interval(margins.tolist(), needed.tolist())
    # Hanley and McNeil's standard error, equation 2.
    first, second = expected / (2 - expected), 2 * expected**2 / (1 + expected)
    yes, no = int(needed.sum()), int((~needed).sum())
    spread = (yes - 1) * (first - expected**2) + (no - 1) * (second - expected**2)
    error = np.sqrt((expected * (1 - expected) + spread) / (yes * no))
    assert low < expected < high and high - low == pytest.approx(2 * 1.96 * error, rel=0.1)


def test_without_both_kinds_there_is_no_area():
    assert area_interval([0.1, 0.2], [True, True]) is None
    assert area([0.1, 0.2], [True, True]) is None and area([0.1, 0.2], [False, False]) is None


def test_unequal_lengths():
    with pytest.raises(ValueError, match="2 routes for 1 labels"):
        score_routes([True, False], [True])


def test_intervals_hold_the_value_and_agree_with_resampling():
    rng = np.random.default_rng(3)
    needed = rng.random(200) < 0.3
    sent = np.where(rng.random(200) < 0.2, ~needed, needed)
    found = routing_intervals(sent.tolist(), needed.tolist(), num_resamples=4000)
    score = score_routes(sent.tolist(), needed.tolist())
    f1s = []
    for _ in range(2000):
        drawn = rng.integers(0, 200, 200)
        f1s.append(score_routes(sent[drawn].tolist(), needed[drawn].tolist()).f1)
    low, high = np.quantile(f1s, [0.025, 0.975])
    assert found["f1"] == pytest.approx((low, high), abs=0.015)
    assert found["recall"][0] < score.recall < found["recall"][1]


def test_each_question_gets_the_score_of_its_route():
    """Routes v, g, g, v; the third is rewritten, and so would be the fourth, which stays."""
    sent, unsure = [False, True, True, False], [False, False, True, True]
    vanilla, graph, rewritten = [0.1, 0.2, 0.3, 0.4], [0.5, 0.6, 0.7, 0.8], [0.0, 0.0, 1.0, 1.0]
    assert compose(sent, vanilla, graph).tolist() == [0.1, 0.6, 0.7, 0.4]
    assert compose(sent, vanilla, graph, unsure, rewritten).tolist() == [0.1, 0.6, 1.0, 0.4]


def test_scores_of_other_questions_are_refused():
    with pytest.raises(ValueError, match=r"of \[2, 2, 1\] questions"):
        compose([True, False], [0.1, 0.2], [0.3])
    with pytest.raises(ValueError, match="one is missing"):
        compose([True], [0.1], [0.3], rewritten=[0.5])
