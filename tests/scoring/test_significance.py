"""Tests of triax.scoring.significance."""

import numpy as np
import pytest
from scipy.stats import bootstrap, ttest_rel

from triax.scoring import significance
from triax.scoring.significance import mean_interval, paired_bootstrap


def scores(seed, count=120, shift=0.0):
    return np.random.default_rng(seed).beta(0.5, 0.5, count) + shift


def test_interval_is_scipys_percentile_interval():
    values = scores(1)
    ours = mean_interval(values, num_resamples=10_000, seed=3)
    theirs = bootstrap(
        (values,), np.mean, n_resamples=10_000, method="percentile", rng=np.random.default_rng(4)
    ).confidence_interval
    spread = values.std() / np.sqrt(len(values))
    assert ours.mean == pytest.approx(values.mean())
    assert ours.low == pytest.approx(theirs.low, abs=0.06 * spread)
    assert ours.high == pytest.approx(theirs.high, abs=0.06 * spread)


def test_comparison_agrees_with_scipys_interval_and_the_paired_t_test():
    first, second = scores(1, shift=0.1), scores(2)
    found = paired_bootstrap(first, second)
    theirs = bootstrap(
        (first - second,), np.mean, method="percentile", rng=np.random.default_rng(5)
    ).confidence_interval
    assert (found.low, found.high) == pytest.approx((theirs.low, theirs.high), abs=0.006)
    assert found.p_value == pytest.approx(ttest_rel(first, second).pvalue, abs=0.02)
    assert found.difference == pytest.approx(np.mean(first - second))


def test_swapping_the_systems_turns_the_sign_only():
    first, second = scores(1), scores(2)
    one, other = paired_bootstrap(first, second), paired_bootstrap(second, first)
    assert one.difference == -other.difference and one.p_value == other.p_value
    assert (one.low, one.high) == pytest.approx((-other.high, -other.low))


def test_r18_the_seed_decides_and_blocks_change_nothing_that_matters(monkeypatch):
    values = scores(6, 50)
    whole = mean_interval(values, seed=1)
    assert whole == mean_interval(list(values), seed=1) != mean_interval(values, seed=2)
    monkeypatch.setattr(significance, "_BLOCK", 1000)
    pieces = mean_interval(values, seed=1)
    assert (pieces.low, pieces.high) == pytest.approx((whole.low, whole.high), abs=0.01)


def test_r09_one_question_and_equal_values():
    alone = paired_bootstrap([1.0], [0.0])
    assert (alone.difference, alone.low, alone.high, alone.p_value) == (1.0, 1.0, 1.0, None)
    same = paired_bootstrap([0.3] * 7, [0.3] * 7)
    assert (same.difference, same.low, same.high, same.p_value) == (0.0, 0.0, 0.0, 1.0)
    apart = paired_bootstrap([1.0] * 20, [0.0] * 20, num_resamples=999)
    assert apart.p_value == pytest.approx(1 / 1000) and apart.low == apart.high == 1.0
    assert mean_interval([0.5]).low == 0.5


@pytest.mark.parametrize("values", [[], [float("nan")], [1.0, float("inf")]])
def test_values_that_cannot_be_averaged_are_refused(values):
    with pytest.raises(ValueError, match="one finite score"):
        mean_interval(values)


def test_other_refusals():
    with pytest.raises(ValueError, match="2 and 1 scores"):
        paired_bootstrap([1.0, 2.0], [1.0])
    with pytest.raises(ValueError, match="confidence 95"):
        mean_interval([1.0], confidence=95.0)
