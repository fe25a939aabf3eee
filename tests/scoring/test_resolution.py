"""Tests of triax.scoring.resolution, against counts made by hand."""

import pytest

from triax.scoring.resolution import resolution_bins, score_resolution


def row(number, prediction, is_here=True, confidence=None, error="", answers=("Rome",)):
    return {
        "id": f"s{number}",
        "answers": list(answers),
        "is_here": is_here,
        "prediction": prediction,
        "confidence": confidence,
        "error": error,
    }


ROWS = [
    row(1, "Rome", confidence=0.9),
    row(2, "city of Rome", confidence=0.6),  # F1 of (city of rome) and (rome): 2 * 1/3 / (4/3)
    row(3, None),
    row(4, None, error="no answer within 5 s"),
    row(5, None, is_here=False),
    row(6, None, is_here=False),
    row(7, "Rome", is_here=False, confidence=0.3),  # the right word, but not from the passages
]


def test_scores_of_seven_slots():
    summary, rows = score_resolution(ROWS, num_resamples=200)
    assert (summary["count/here"], summary["count/not_here"], summary["count/errors"]) == (4, 3, 1)
    assert summary["resolve/em"] == 1 / 4
    assert summary["resolve/f1"] == pytest.approx((1 + 0.5) / 4)
    assert summary["resolve/right"] == pytest.approx(3 / 7)
    # Said: slots 3, 5, 6. Absent: 5, 6, 7.
    assert summary["not_here/precision"] == pytest.approx(2 / 3)
    assert summary["not_here/recall"] == pytest.approx(2 / 3)
    assert summary["not_here/f1"] == pytest.approx(2 / 3)
    # Bins (.2, .3]: .3 wrong; (.5, .6]: .6 wrong; (.8, .9]: .9 right.
    assert summary["calibration/ece"] == pytest.approx((0.3 + 0.6 + 0.1) / 3)
    assert summary["calibration/brier"] == pytest.approx((0.09 + 0.36 + 0.01) / 3)
    assert [one["right"] for one in rows] == [1, 0, 0, 0, 1, 1, 0]
    assert [one["em"] for one in rows] == [1, 0, 0, 0, 0, 0, 0]
    for name in ("resolve/em", "not_here/f1", "calibration/ece"):
        assert summary[f"{name}/low"] <= summary[name] <= summary[f"{name}/high"]
    assert sum(one.count for one in resolution_bins(rows)) == 3


def test_what_was_not_asked_is_absent_not_zero():
    summary, rows = score_resolution([row(1, "the Rome.")], num_resamples=10)
    assert summary["resolve/em"] == 1.0
    assert not any(key.startswith(("not_here/", "calibration/")) for key in summary)
    assert resolution_bins(rows) == ()
    summary, _ = score_resolution([row(1, None, is_here=False)], num_resamples=10)
    assert "resolve/em" not in summary and summary["resolve/right"] == 1.0


def test_one_who_never_says_so_has_no_precision():
    rows = [row(1, "Rome"), row(2, "Rome", is_here=False)]
    summary, _ = score_resolution(rows, num_resamples=50)
    assert summary["not_here/precision"] == summary["not_here/f1"] == 0.0


def test_no_rows_are_refused():
    with pytest.raises(ValueError, match="no rows"):
        score_resolution([])
