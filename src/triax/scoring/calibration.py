"""Whether a confidence is the probability of being right: reliability bins, ECE, Brier score."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

Scheme = Literal["width", "mass"]


@dataclass(frozen=True, slots=True)
class Bin:
    """The predictions whose confidence lies in (low, high]; the first bin holds `low` too.

    `confidence` and `accuracy` are means over them, both 0 where `count` is 0.
    """

    low: float
    high: float
    count: int
    confidence: float
    accuracy: float


@dataclass(frozen=True, slots=True)
class Calibration:
    """ECE with its bootstrap interval, and the Brier score, over `count` predictions.

    `chance` is the ECE to be expected of so many predictions with these confidences if each were
    exactly the probability of being right: what is above it is miscalibration.
    """

    ece: float
    low: float
    high: float
    chance: float
    brier: float
    count: int


def reliability_bins(
    confidences: Sequence[float] | np.ndarray,
    is_right: Sequence[bool | int | float] | np.ndarray,
    num_bins: int = 10,
    scheme: Scheme = "width",
) -> tuple[Bin, ...]:
    """Groups predictions by confidence.

    `width`: bins of equal width over [0, 1] (Guo et al., 2017, equation 3), empty ones included.
    `mass`: bins of equally many predictions, as equal as the count allows (Naeini et al., 2015);
    their limits are the confidences that they hold. Equal confidences may fall into two of them.

    Raises:
        ValueError: no prediction, unequal lengths, a confidence outside [0, 1], or no bin.
    """
    scores, right = _checked(confidences, is_right, num_bins)
    order = np.argsort(scores, kind="stable")
    scores, right = scores[order], right[order]
    if scheme == "width":
        edges = np.linspace(0, 1, num_bins + 1)
        # side="right": a confidence that equals an edge belongs to the bin below it.
        cuts = np.searchsorted(scores, edges[1:-1], side="right")
        limits = list(zip(edges[:-1], edges[1:], strict=True))
        groups = np.split(np.arange(len(scores)), cuts)
    else:
        groups = [one for one in np.array_split(np.arange(len(scores)), num_bins) if len(one)]
        limits = [(scores[one[0]], scores[one[-1]]) for one in groups]
    return tuple(
        Bin(
            float(low),
            float(high),
            len(group),
            float(scores[group].mean()) if len(group) else 0.0,
            float(right[group].mean()) if len(group) else 0.0,
        )
        for group, (low, high) in zip(groups, limits, strict=True)
    )


def expected_calibration_error(bins: Sequence[Bin]) -> float:
    """Mean distance of confidence and accuracy over bins, weighted by their counts (Guo, eq. 3).

    >>> expected_calibration_error([Bin(0.0, 0.5, 1, 0.4, 0.0), Bin(0.5, 1.0, 3, 0.8, 1.0)])
    0.25
    """
    total = sum(one.count for one in bins)
    return float(sum(one.count * abs(one.accuracy - one.confidence) for one in bins) / total)


def brier_score(
    confidences: Sequence[float] | np.ndarray, is_right: Sequence[bool | int | float] | np.ndarray
) -> float:
    """Mean squared distance of confidence and outcome (Brier, 1950, for two classes: in [0, 1]).

    Raises:
        ValueError: as for `reliability_bins`.
    """
    scores, right = _checked(confidences, is_right)
    return float(np.mean((scores - right) ** 2))


def score_calibration(
    confidences: Sequence[float] | np.ndarray,
    is_right: Sequence[bool | int | float] | np.ndarray,
    num_bins: int = 10,
    scheme: Scheme = "width",
    num_resamples: int = 1000,
    seed: int = 0,
) -> Calibration:
    """ECE with its 95% percentile interval (Efron, 1979), and the Brier score.

    ECE is a mean of absolute values, so that chance alone makes it larger than 0 and resampling
    makes it larger still: read the interval as the spread, not as the place of the true value.
    `chance` is a mean over outcomes drawn with the given confidences (Broecker and Smith, 2007).

    Raises:
        ValueError: as for `reliability_bins`.
    """
    scores, right = _checked(confidences, is_right, num_bins)
    generator = np.random.default_rng(seed)
    errors, chances = [], []
    for _ in range(num_resamples):
        drawn = generator.integers(0, len(scores), len(scores))
        errors.append(_error(scores[drawn], right[drawn], num_bins, scheme))
        outcomes = (generator.random(len(scores)) < scores).astype(np.float64)
        chances.append(_error(scores, outcomes, num_bins, scheme))
    chance = float(np.mean(chances)) if chances else np.nan
    low, high = np.quantile(errors, [0.025, 0.975]) if errors else (np.nan, np.nan)
    ece = expected_calibration_error(reliability_bins(scores, right, num_bins, scheme))
    return Calibration(
        ece, float(low), float(high), chance, brier_score(scores, right), len(scores)
    )


def _error(scores: np.ndarray, right: np.ndarray, num_bins: int, scheme: Scheme) -> float:
    """As `expected_calibration_error` of `reliability_bins`, fast enough to be resampled."""
    if scheme == "mass":
        return expected_calibration_error(reliability_bins(scores, right, num_bins, scheme))
    edges = np.linspace(0, 1, num_bins + 1)[1:-1]
    gaps = np.bincount(np.searchsorted(edges, scores, side="left"), weights=right - scores)
    return float(np.abs(gaps).sum() / len(scores))


def _checked(
    confidences: Sequence[float] | np.ndarray,
    is_right: Sequence[bool | int | float] | np.ndarray,
    num_bins: int = 1,
) -> tuple[np.ndarray, np.ndarray]:
    scores = np.asarray(confidences, np.float64)
    right = np.asarray(is_right, np.float64)
    if scores.ndim != 1 or scores.shape != right.shape or not len(scores):
        raise ValueError(
            f"confidences of shape {scores.shape} for outcomes of shape {right.shape}; expected "
            "one of each for at least one prediction"
        )
    # NaN compares false, so it is found too.
    if not ((scores >= 0) & (scores <= 1)).all() or not ((right >= 0) & (right <= 1)).all():
        raise ValueError(
            f"confidences from {scores.min()} to {scores.max()} and outcomes from {right.min()} to "
            f"{right.max()}; expected both in [0, 1]: pass probabilities, not logits"
        )
    if num_bins < 1:
        raise ValueError(f"{num_bins=}; expected at least 1")
    return scores, right
