"""Scores of a resolver on slots of which some are not answered by the passages shown."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from triax.scoring.answers import best_exact_match, best_f1
from triax.scoring.calibration import reliability_bins, score_calibration
from triax.scoring.significance import mean_interval


def score_resolution(
    rows: Sequence[Mapping[str, Any]], num_resamples: int = 10_000
) -> tuple[dict[str, float], list[dict[str, Any]]]:
    """Means with their 95% bootstrap intervals, and one scored row for each of the given ones.

    EM and F1 are over the slots whose passages hold the answer; `not_here` is precision, recall
    and F1 of the decision that they do not; `right` counts both kinds, a right value where there
    is one and silence where there is none. Calibration is over the values that came with a
    confidence: a value is right if it matches exactly and the passages hold the answer. A failed
    or unreadable answer (`error`) is wrong, and no decision that the answer is not here (R29).

    Args:
        rows: `id`, `answers` (texts), `is_here` (whether the passages hold the answer),
            `prediction` (text, or None for "not here"), `confidence` (in [0, 1], or None) and
            `error` ("" if there is none).
        num_resamples: of the bootstrap.

    Returns:
        Summary: `resolve/em`, `resolve/f1`, `not_here/precision`, `not_here/recall`,
        `not_here/f1`, `resolve/right`, `calibration/ece`, `calibration/brier`, each with `/low`
        and `/high` where it has an interval and absent where it has no item; the ECE that chance
        alone would give as `calibration/ece/chance`; and counts.

    Raises:
        ValueError: no rows.
    """
    if not rows:
        raise ValueError("no rows to score; measure at least one slot")
    scored = [_scored(row) for row in rows]
    here = [row for row in scored if row["is_here"]]
    summary: dict[str, float] = {
        "count/here": float(len(here)),
        "count/not_here": float(len(scored) - len(here)),
        "count/errors": float(sum(bool(row["error"]) for row in scored)),
    }
    for name, values in (
        ("resolve/em", [row["em"] for row in here]),
        ("resolve/f1", [row["f1"] for row in here]),
        ("resolve/right", [row["right"] for row in scored]),
    ):
        if values:
            interval = mean_interval(values, num_resamples=num_resamples)
            summary |= _with_interval(name, interval.mean, interval.low, interval.high)
    if 0 < len(here) < len(scored):
        summary |= _not_here(scored, num_resamples)
    filled = [row for row in scored if row["confidence"] is not None and row["prediction"]]
    if filled:
        found = score_calibration(*_outcomes(filled), num_resamples=min(num_resamples, 1000))
        summary |= _with_interval("calibration/ece", found.ece, found.low, found.high)
        summary |= {
            "calibration/ece/chance": found.chance,
            "calibration/brier": found.brier,
            "count/calibrated": float(found.count),
        }
    return summary, scored


def resolution_bins(rows: Sequence[Mapping[str, Any]], num_bins: int = 10) -> tuple[Any, ...]:
    """The reliability bins of scored rows; none where no value has a confidence."""
    filled = [row for row in rows if row["confidence"] is not None and row["prediction"]]
    return reliability_bins(*_outcomes(filled), num_bins) if filled else ()


def _scored(row: Mapping[str, Any]) -> dict[str, Any]:
    given, is_here = row["prediction"], bool(row["is_here"])
    is_said = given is not None and not row["error"]
    says_absent = given is None and not row["error"]
    em = best_exact_match(given, row["answers"]) if is_said and is_here else 0.0
    return {
        **row,
        "em": em,
        "f1": best_f1(given, row["answers"]) if is_said and is_here else 0.0,
        "says_absent": says_absent,
        "right": em if is_here else float(says_absent),
    }


def _outcomes(rows: Sequence[Mapping[str, Any]]) -> tuple[list[float], list[float]]:
    return [row["confidence"] for row in rows], [row["em"] for row in rows]


def _not_here(rows: Sequence[Mapping[str, Any]], num_resamples: int) -> dict[str, float]:
    """Precision, recall and F1 of "not here"; resamples are draws of the four kinds of outcome."""
    cells = np.zeros(4)
    for row in rows:
        cells[2 * row["is_here"] + row["says_absent"]] += 1
    drawn = np.random.default_rng(0).multinomial(len(rows), cells / cells.sum(), size=num_resamples)
    found: dict[str, float] = {}
    for name, ratio in _RATIOS.items():
        low, high = np.quantile(ratio(drawn), [0.025, 0.975])
        value = float(ratio(cells[None])[0])
        found |= _with_interval(f"not_here/{name}", value, float(low), float(high))
    return found


def _share(part: np.ndarray, whole: np.ndarray) -> np.ndarray:
    """0 where there is nothing to take a share of, as in scikit-learn."""
    return np.divide(part, whole, out=np.zeros(len(part)), where=whole > 0)


# Columns: absent and not said, absent and said, here and not said, here and said.
_RATIOS: Mapping[str, Callable[[np.ndarray], np.ndarray]] = {
    "precision": lambda c: _share(c[:, 1].astype(float), c[:, 1] + c[:, 3]),
    "recall": lambda c: _share(c[:, 1].astype(float), c[:, 0] + c[:, 1]),
    "f1": lambda c: _share(2.0 * c[:, 1], 2 * c[:, 1] + c[:, 0] + c[:, 3]),
}


def _with_interval(name: str, value: float, low: float, high: float) -> dict[str, float]:
    return {name: value, f"{name}/low": low, f"{name}/high": high}
