"""From scores of windows to answers: candidates over all passages, and calibrated confidence.

Calibration: a logistic regression on the margins (Platt 1999), fitted on held-out lessons.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

import numpy as np
from jaxtyping import Float

from triax.models.reading_scores import RowScores
from triax.models.reading_windows import Window
from triax.models.span_reader import NUM_VERDICTS, best_spans
from triax.records.readings import Reading, ReadingKind

_VERDICTS: tuple[ReadingKind, ...] = ("yes", "no")
_LOW = -20.0  # margins are clipped here: below it all are equally hopeless


@dataclass(frozen=True, slots=True)
class Calibration:
    """Weights of [1, margin, lead] for "the answer is right" and for "an answer is here".

    `lead` is how far the margin is above that of the best different answer.
    """

    right: tuple[float, float, float] = (0.0, 0.5, 0.0)
    here: tuple[float, float, float] = (0.0, 1.0, 0.0)

    @classmethod
    def from_json(cls, value: Mapping[str, Sequence[float]] | None) -> "Calibration":
        """Reads what `to_json` wrote; None gives the uncalibrated one."""
        if value is None:
            return cls()
        return cls(tuple(value["right"]), tuple(value["here"]))

    def to_json(self) -> dict[str, list[float]]:
        """For config.json."""
        return {name: list(weights) for name, weights in asdict(self).items()}


@dataclass(frozen=True, slots=True)
class Best:
    """The best answer to one query before calibration; `lead` as in `Calibration`."""

    reading: Reading
    lead: float

    @property
    def features(self) -> tuple[float, float, float]:
        """1, margin and lead, clipped."""
        margin = float(np.clip(self.reading.margin, _LOW, -_LOW))
        return 1.0, margin, float(np.clip(self.lead, 0.0, -_LOW))


def best_answer(
    passages: Sequence[str],
    windows: Sequence[tuple[int, Window]],
    scores: Sequence[RowScores],
    max_tokens: int = 24,
    allows_verdicts: bool = False,
) -> Best | None:
    """The best answer over all windows of a query's passages; None without any candidate.

    Args:
        passages: texts as the windows were cut from them.
        windows: each with the number of its passage.
        scores: of each window.
        max_tokens: longest answer.
        allows_verdicts: whether yes and no are answers to this query.
    """
    found: list[Reading] = []
    for (passage, window), (start, end) in zip(windows, scores, strict=True):
        length = len(start) - NUM_VERDICTS
        for one in best_spans(start, end, max_tokens):
            if one.start >= length:
                if allows_verdicts:
                    verdict = _VERDICTS[one.start - length]
                    found.append(Reading(verdict, passage, 0, 0, one.margin, 0.0, 0.0, verdict))
                continue
            low, high = window.characters(one.start, one.end)
            text = passages[passage][low:high].strip()
            if text:
                found.append(Reading(text, passage, low, high, one.margin, 0.0, 0.0))
    if not found:
        return None
    found.sort(key=lambda one: -one.margin)
    best = found[0]
    other = next((one for one in found if _plain(one.text) != _plain(best.text)), None)
    lead = best.margin - other.margin if other else -_LOW
    return Best(best, lead)


def calibrated(best: Best, calibration: Calibration) -> Reading:
    """The reading with its probabilities."""
    reading = best.reading
    right, here = (
        float(1.0 / (1.0 + np.exp(-np.dot(weights, best.features))))
        for weights in (calibration.right, calibration.here)
    )
    return Reading(
        reading.text,
        reading.passage,
        reading.start,
        reading.end,
        reading.margin,
        right,
        here,
        reading.kind,
    )


def fit_logistic(
    features: Float[np.ndarray, "items features"],
    targets: Float[np.ndarray, " items"],
    penalty: float = 1e-3,
    rounds: int = 50,
) -> tuple[float, ...]:
    """Weights of a logistic regression by Newton's method, with a small penalty on their squares.

    Args:
        features: the first column is 1.
        targets: 1 or 0.
        penalty: keeps separable data from infinite weights.
        rounds: of Newton's method at most.
    """
    weights = np.zeros(features.shape[1])
    eye = penalty * len(features) * np.eye(features.shape[1])
    for _ in range(rounds):
        p = 1.0 / (1.0 + np.exp(-np.clip(features @ weights, -30, 30)))
        slope = features.T @ (p - targets) + eye @ weights
        curve = (features * (p * (1 - p))[:, None]).T @ features + eye
        move = np.linalg.solve(curve, slope)
        weights = weights - move
        if np.abs(move).max() < 1e-9:
            break
    return tuple(float(weight) for weight in weights)


def _plain(text: str) -> str:
    return re.sub(r"\W+", " ", text.lower()).strip()
