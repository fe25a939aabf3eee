"""Tests of triax.scoring.calibration, against values computed by hand."""

import math

import numpy as np
import pytest

from triax.scoring.calibration import (
    Bin,
    brier_score,
    expected_calibration_error,
    reliability_bins,
    score_calibration,
)

# Guo et al. (2017), equation 3, with four bins of width 1/4:
#   (0, .25]: .2, .25 -> confidence .225, right 1/2; (.25, .5]: none;
#   (.5, .75]: .6, .7, .75 -> .68333, right 1/3;     (.75, 1]: .9 -> .9, right 1.
CONFIDENCES = [0.9, 0.2, 0.75, 0.6, 0.25, 0.7]
RIGHT = [1, 0, 0, 1, 1, 0]


def test_bins_of_equal_width():
    bins = reliability_bins(CONFIDENCES, RIGHT, 4)
    assert [(one.low, one.high) for one in bins] == [(0, 0.25), (0.25, 0.5), (0.5, 0.75), (0.75, 1)]
    assert [one.count for one in bins] == [2, 0, 3, 1]
    assert [one.confidence for one in bins] == pytest.approx([0.225, 0, 2.05 / 3, 0.9])
    assert [one.accuracy for one in bins] == pytest.approx([1 / 2, 0, 1 / 3, 1])
    # (2 * .275 + 3 * .35 + 1 * .1) / 6
    assert expected_calibration_error(bins) == pytest.approx(1.7 / 6)


def test_bins_of_equal_mass():
    # Sorted .2 .25 | .6 .7 | .75 .9 with outcomes 0 1 | 1 0 | 0 1.
    bins = reliability_bins(CONFIDENCES, RIGHT, 3, "mass")
    assert [(one.low, one.high, one.count) for one in bins] == [
        (0.2, 0.25, 2),
        (0.6, 0.7, 2),
        (0.75, 0.9, 2),
    ]
    # (|.5 - .225| + |.5 - .65| + |.5 - .825|) / 3
    assert expected_calibration_error(bins) == pytest.approx((0.275 + 0.15 + 0.325) / 3)
    assert [one.count for one in reliability_bins(CONFIDENCES, RIGHT, 4, "mass")] == [2, 2, 1, 1]
    assert len(reliability_bins([0.5], [1], 10, "mass")) == 1


def test_edges_and_both_ends_are_in_a_bin():
    bins = reliability_bins([0.0, 0.5, 1.0], [0, 1, 1], 2)
    assert [one.count for one in bins] == [2, 1]


def test_brier():
    # (.01 + .04 + .5625 + .16 + .5625 + .49) / 6
    assert brier_score(CONFIDENCES, RIGHT) == pytest.approx(1.825 / 6)
    assert brier_score([1.0, 0.0], [1, 0]) == 0.0


def test_a_perfect_and_a_hopeless_confidence():
    perfect = score_calibration([1.0] * 5 + [0.0] * 5, [1] * 5 + [0] * 5)
    assert (perfect.ece, perfect.low, perfect.high, perfect.brier) == (0, 0, 0, 0)
    assert score_calibration([1.0] * 4, [0] * 4).ece == 1.0


@pytest.mark.parametrize("scheme", ["width", "mass"])
def test_interval_holds_the_value_and_is_repeatable(scheme):
    generator = np.random.default_rng(0)
    scores = generator.uniform(size=200)
    right = generator.uniform(size=200) < scores / 2
    found = score_calibration(scores, right, scheme=scheme, num_resamples=200)
    assert found == score_calibration(scores, right, scheme=scheme, num_resamples=200)
    assert found.low < found.ece < found.high
    # Outcomes are half as likely as the confidences say, whose mean is 1/2: the gap is 1/4.
    assert found.ece == pytest.approx(0.25, abs=0.05) and found.count == 200


def test_chance_is_the_mean_deviation_of_a_binomial():
    """All in one bin: the ECE of calibrated outcomes is |share right - p|, whose mean is exact."""
    p, n = 0.3, 9
    weights = [math.comb(n, k) * p**k * (1 - p) ** (n - k) for k in range(n + 1)]
    exact = sum(weight * abs(k / n - p) for k, weight in enumerate(weights))
    found = score_calibration([p] * n, [1] * n, num_resamples=20_000)
    assert found.chance == pytest.approx(exact, abs=0.003)


def test_one_resample_of_one_value_is_that_value():
    # All resamples of equal predictions are the same, so both computations of ECE must agree.
    found = score_calibration([0.3] * 7, [1] * 7, num_resamples=20)
    assert found.ece == pytest.approx(0.7) and found.low == pytest.approx(0.7)
    assert math.isclose(found.high, 0.7)


@pytest.mark.parametrize(
    ("scores", "right", "words"),
    [
        ([], [], "at least one"),
        ([0.5], [1, 0], "expected one of each"),
        ([1.5], [1], "not logits"),
        ([float("nan")], [1], "not logits"),
    ],
)
def test_bad_input_is_refused(scores, right, words):
    with pytest.raises(ValueError, match=words):
        reliability_bins(scores, right)


def test_bins_are_at_least_one():
    with pytest.raises(ValueError, match="num_bins=0"):
        reliability_bins([0.5], [1], 0)
    assert expected_calibration_error([Bin(0.0, 1.0, 1, 0.5, 1.0)]) == 0.5
