import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from triax.records.question_types import QUESTION_TYPES
from triax.scoring.significance import mean_interval, paired_bootstrap
from triax.scoring.type_scores import compare_types, merged, score_types, type_intervals

KINDS = st.sampled_from(QUESTION_TYPES)


def test_by_hand():
    gold = ["bridge", "bridge", "bridge", "comparison", "comparison", "inference"]
    told = ["bridge", "bridge", "comparison", "comparison", "comparison", "bridge_comparison"]
    scores = score_types(told, gold)
    # bridge: 2 hits of 3 gold, 2 told; comparison: 2 of 2 gold, 3 told; inference: none.
    assert scores.macro_f1 == pytest.approx((4 / 5 + 4 / 5 + 0) / 3)
    assert scores.accuracy == pytest.approx(4 / 6)
    assert scores.num_questions == 6
    # Rows are gold: bridge, comparison, bridge_comparison, inference.
    assert scores.confusion.tolist() == [[2, 1, 0, 0], [0, 2, 0, 0], [0, 0, 0, 0], [0, 0, 1, 0]]


@settings(max_examples=30)
@given(st.lists(st.tuples(KINDS, KINDS), min_size=1, max_size=30))
def test_it_is_that_of_scikit_learn_over_the_types_in_gold(pairs):
    metrics = pytest.importorskip("sklearn.metrics")
    told, gold = map(list, zip(*pairs))
    for change in (str, merged):
        said, true = [change(one) for one in told], [change(one) for one in gold]
        wanted = metrics.f1_score(
            true, said, labels=sorted(set(true)), average="macro", zero_division=0
        )
        scores = score_types(said, true)
        assert scores.macro_f1 == pytest.approx(wanted)
        assert scores.accuracy == pytest.approx(metrics.accuracy_score(true, said))


def test_three_types():
    assert [merged(kind) for kind in QUESTION_TYPES] == [
        "bridge",
        "comparison",
        "comparison",
        "inference",
    ]


def test_what_cannot_be_scored():
    for told, gold in ((["bridge"], []), ([], []), (["bridge"], ["bridge", "bridge"])):
        with pytest.raises(ValueError, match="at least one"):
            score_types(told, gold)
    with pytest.raises(ValueError, match=r"\['yes_no'\]"):
        score_types(["yes_no"], ["bridge"])


def test_the_interval_of_accuracy_is_that_of_the_mean():
    """`mean_interval` draws questions; here the cells that they fall into are drawn."""
    gold = ["bridge"] * 60 + ["comparison"] * 40
    told = ["bridge"] * 50 + ["inference"] * 15 + ["comparison"] * 35
    scores = score_types(told, gold)
    low, high = type_intervals(scores)["accuracy"]
    wanted = mean_interval([float(one == true) for one, true in zip(told, gold)])
    assert (low, high) == pytest.approx((wanted.low, wanted.high), abs=0.011)  # a question is 0.01


def test_the_interval_of_macro_f1_is_that_of_drawing_questions():
    rng = np.random.default_rng(1)
    gold = rng.choice(QUESTION_TYPES, 80, p=[0.6, 0.2, 0.15, 0.05])
    told = np.where(rng.random(80) < 0.8, gold, rng.choice(QUESTION_TYPES, 80))
    found = []
    for _ in range(1500):
        rows = rng.integers(0, 80, 80)
        found.append(score_types(told[rows].tolist(), gold[rows].tolist()).macro_f1)
    wanted = np.quantile(found, [0.025, 0.975])
    low, high = type_intervals(score_types(told.tolist(), gold.tolist()))["macro_f1"]
    assert (low, high) == pytest.approx(wanted, abs=0.03)


def test_all_right_and_one_question():
    assert type_intervals(score_types(["bridge"], ["bridge"])) == {
        "macro_f1": (1.0, 1.0),
        "accuracy": (1.0, 1.0),
    }


def test_two_classifiers_are_compared_on_the_same_questions():
    # One type only: macro F1 is that of bridges, 2 hits / (gold + told) with told = hits, so that
    # a resample of more hits has the higher F1, as it has the higher accuracy.
    gold = ["bridge"] * 50
    first = ["bridge"] * 45 + ["comparison"] * 5
    second = ["bridge"] * 30 + ["comparison"] * 20
    found = compare_types(first, second, gold)
    assert found.difference == pytest.approx(2 * 45 / 95 - 2 * 30 / 80)
    assert found.low < found.difference < found.high
    shares = [[float(one == "bridge") for one in told] for told in (first, second)]
    assert (found.p_value < 0.05) == (paired_bootstrap(*shares).p_value < 0.05) is True
    back = compare_types(second, first, gold)
    assert (back.difference, back.num_questions) == (-found.difference, 50)


def test_a_classifier_does_not_differ_from_itself():
    gold = ["bridge", "comparison", "inference", "bridge"]
    told = ["bridge", "bridge", "inference", "bridge"]
    found = compare_types(told, told, gold)
    assert (found.difference, found.low, found.high, found.p_value) == (0.0, 0.0, 0.0, 1.0)
    assert compare_types(["bridge"], ["inference"], ["bridge"]).p_value is None
