"""From scores of windows to answers: candidates over all passages, and calibrated confidence.

Calibration: a logistic regression on the margins (Platt 1999), fitted on held-out lessons.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace

import numpy as np
from jaxtyping import Float

from triax.models.reading_scores import RowScores
from triax.models.reading_windows import Window
from triax.models.span_reader import NO, NOT_HERE, YES
from triax.records.readings import Reading, ReadingKind

_VERDICTS: dict[ReadingKind, int] = {"yes": YES, "no": NO}
_LOW = -20.0  # margins are clipped here: below it all are equally hopeless


@dataclass(frozen=True, slots=True)
class Calibration:
    """Weights of [1, margin, lead] for "the answer is right" and for "an answer is here".

    `lead` is the log of how much more probable the answer is than all other answers together.
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
        return 1.0, margin, float(np.clip(self.lead, _LOW, -_LOW))


def best_answer(
    passages: Sequence[str],
    windows: Sequence[tuple[int, Window]],
    scores: Sequence[RowScores],
    allows_verdicts: bool = False,
    allows_spans: bool = True,
) -> Best | None:
    """The best answer over all windows of a query's passages; None without any candidate.

    Mentions of one text add up, within a window and over windows: what is asked for is the text,
    not its place. The reading is that of its best mention.

    Args:
        passages: texts as the windows were cut from them.
        windows: each with the number of its passage.
        scores: of each window.
        allows_verdicts: whether yes and no are answers to this query.
        allows_spans: whether pieces of the passages are.
    """
    mentions: dict[str, list[Reading]] = {}
    for (passage, window), row in zip(windows, scores, strict=True):
        none = float(row.verdicts[NOT_HERE])
        if allows_verdicts:
            for kind, verdict in _VERDICTS.items():
                margin = float(row.verdicts[verdict]) - none
                one = Reading(kind, passage, 0, 0, margin, 0.0, 0.0, kind)
                mentions.setdefault(f"verdict {kind}", []).append(one)
        spans = zip(row.spans, row.starts, row.ends, strict=True) if allows_spans else ()
        for score, start, end in spans:
            low, high = window.characters(int(start), int(end))
            text = passages[passage][low:high].strip()
            if text:
                one = Reading(text, passage, low, high, float(score) - none, 0.0, 0.0)
                mentions.setdefault(f"span {_plain(text)}", []).append(one)
    if not mentions:
        return None
    together = {key: _log_sum([one.margin for one in found]) for key, found in mentions.items()}
    best = max(together, key=together.__getitem__)
    others = [margin for key, margin in together.items() if key != best]
    lead = together[best] - _log_sum(others) if others else -_LOW
    reading = max(mentions[best], key=lambda one: one.margin)
    return Best(replace(reading, margin=together[best]), lead)


def _log_sum(values: Sequence[float]) -> float:
    return float(np.logaddexp.reduce(values))


def calibrated(best: Best, calibration: Calibration) -> Reading:
    """The reading with its probabilities."""
    reading = best.reading
    right, here = (
        float(1.0 / (1.0 + np.exp(-np.dot(weights, best.features))))
        for weights in (calibration.right, calibration.here)
    )
    return replace(reading, p_right=right, p_here=here)


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
