"""Whether a difference between two systems is more than the luck of the questions."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

# Resamples are drawn in blocks of about this many numbers (32 MB), whatever the question count.
_BLOCK = 4_000_000


@dataclass(frozen=True, slots=True)
class Interval:
    """A mean over questions and its percentile interval."""

    mean: float
    low: float
    high: float
    num_questions: int


@dataclass(frozen=True, slots=True)
class Comparison:
    """The mean difference of two systems on the same questions, first minus second.

    `p_value` is two-sided and None for fewer than two questions, where nothing can be said.
    """

    difference: float
    low: float
    high: float
    p_value: float | None
    num_questions: int


def mean_interval(
    values: Sequence[float] | np.ndarray,
    confidence: float = 0.95,
    num_resamples: int = 10_000,
    seed: int = 0,
) -> Interval:
    """The mean of per-question scores with its bootstrap percentile interval (Efron, 1979).

    With one question, or equal values, the interval is that value alone: the bootstrap knows no
    more than it is shown.

    Raises:
        ValueError: no values, a value that is not finite, or a confidence outside (0, 1).
    """
    scores = _finite(values, confidence, num_resamples)
    means = _resampled_means(scores, num_resamples, seed)
    low, high = _percentiles(means, confidence)
    return Interval(float(scores.mean()), low, high, len(scores))


def paired_bootstrap(
    first: Sequence[float] | np.ndarray,
    second: Sequence[float] | np.ndarray,
    confidence: float = 0.95,
    num_resamples: int = 10_000,
    seed: int = 0,
) -> Comparison:
    """Compares two systems by their scores on the same questions, in the same order.

    Questions are drawn with replacement, both scores of one together. The p-value is the share of
    resamples in which the difference, centred on 0, is at least as large as the observed one
    (Berg-Kirkpatrick et al., 2012, section 2), with one added above and below, so it is never 0.

    Raises:
        ValueError: the lengths differ, or as for `mean_interval`.
    """
    if len(first) != len(second):
        raise ValueError(
            f"{len(first)} and {len(second)} scores; expected one of each for every question"
        )
    scores = [_finite(one, confidence, num_resamples) for one in (first, second)]
    differences = scores[0] - scores[1]
    observed = float(differences.mean())
    means = _resampled_means(differences, num_resamples, seed)
    low, high = _percentiles(means, confidence)
    p_value = None
    if len(differences) > 1:
        # A rounding error must not turn a difference that is exactly as large into a smaller one.
        reach = abs(observed) * (1 - 1e-12) - 1e-15
        extreme = int(np.count_nonzero(np.abs(means - observed) >= reach))
        p_value = (extreme + 1) / (num_resamples + 1)
    return Comparison(observed, low, high, p_value, len(differences))


def _finite(
    values: Sequence[float] | np.ndarray, confidence: float, num_resamples: int
) -> np.ndarray:
    scores = np.asarray(values, dtype=np.float64)
    if scores.ndim != 1 or not len(scores) or not np.isfinite(scores).all():
        raise ValueError(
            f"scores of shape {scores.shape}, {int(np.isfinite(scores).sum())} of them finite; "
            "expected one finite score for each of at least one question"
        )
    if not 0 < confidence < 1 or num_resamples < 1:
        raise ValueError(
            f"confidence {confidence}, {num_resamples} resamples; expected a confidence between 0 "
            "and 1 and at least 1 resample"
        )
    return scores


def _resampled_means(scores: np.ndarray, num_resamples: int, seed: int) -> np.ndarray:
    return np.concatenate(list(_blocks(scores, num_resamples, np.random.default_rng(seed))))


def _blocks(
    scores: np.ndarray, num_resamples: int, generator: np.random.Generator
) -> Iterator[np.ndarray]:
    count = len(scores)
    rows = max(1, _BLOCK // count)
    for done in range(0, num_resamples, rows):
        drawn = generator.integers(0, count, (min(rows, num_resamples - done), count))
        yield scores[drawn].mean(axis=1)


def _percentiles(means: np.ndarray, confidence: float) -> tuple[float, float]:
    tail = (1 - confidence) / 2
    low, high = np.quantile(means, [tail, 1 - tail])
    return float(low), float(high)
