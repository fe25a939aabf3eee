"""How well kinds of questions are told: macro F1, accuracy, and which are taken for which.

Source: macro F1 as the mean of the F1 of each class (Opitz and Burst, 2019, "Macro F1 and Macro
F1", the first of both), here of the classes that occur in gold: a data set without comparisons says
nothing of them. "The Reasoning Bottleneck in Graph-RAG" (Zarinkia, Srinivasan, Thomo, 2026, section
3.4) has three kinds, so figures are also given with bridged comparisons merged into comparisons.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from triax.records.question_types import QUESTION_TYPES
from triax.scoring.significance import Comparison


@dataclass(frozen=True, slots=True)
class TypeScores:
    """Shares from 0 to 1, and `confusion` [gold, told] in the order of `kinds`."""

    macro_f1: float
    accuracy: float
    num_questions: int
    kinds: tuple[str, ...]
    confusion: Int[np.ndarray, "kinds kinds"]


def merged(kind: str) -> str:
    """The kind of three that one of the four is part of.

    >>> merged("bridge_comparison"), merged("inference")
    ('comparison', 'inference')
    """
    return "comparison" if kind == "bridge_comparison" else kind


def score_types(told: Sequence[str], gold: Sequence[str]) -> TypeScores:
    """Scores of kinds against gold ones, in the same order.

    Raises:
        ValueError: unequal lengths, no question, or a kind that there is not.
    """
    if len(told) != len(gold) or not gold:
        raise ValueError(
            f"{len(told)} kinds for {len(gold)} gold ones; expected as many, at least one"
        )
    if unknown := {*told, *gold} - set(QUESTION_TYPES):
        raise ValueError(f"unknown kinds {sorted(unknown)}; expected some of {QUESTION_TYPES}")
    counts = np.zeros((len(QUESTION_TYPES), len(QUESTION_TYPES)), np.int64)
    place = {kind: number for number, kind in enumerate(QUESTION_TYPES)}
    for said, true in zip(told, gold, strict=True):
        counts[place[true], place[said]] += 1
    macro, accuracy = _figures(counts[None].astype(float))
    return TypeScores(float(macro[0]), float(accuracy[0]), len(gold), QUESTION_TYPES, counts)


def type_intervals(
    scores: TypeScores, confidence: float = 0.95, num_resamples: int = 10_000, seed: int = 0
) -> dict[str, tuple[float, float]]:
    """Bootstrap percentile intervals (Efron, 1979) of `macro_f1` and `accuracy` over questions.

    A class that a resample lacks is left out of its mean, as it is of the figure itself.
    """
    cells = scores.confusion.ravel()
    # A resample of questions is a draw of the cells that they fall into.
    drawn = np.random.default_rng(seed).multinomial(
        cells.sum(), cells / cells.sum(), size=num_resamples
    )
    found = _figures(drawn.reshape(num_resamples, *scores.confusion.shape).astype(float))
    tail = (1 - confidence) / 2
    bounds = [np.quantile(one, [tail, 1 - tail]) for one in found]
    return {
        name: (float(low), float(high))
        for name, (low, high) in zip(("macro_f1", "accuracy"), bounds, strict=True)
    }


def compare_types(
    first: Sequence[str],
    second: Sequence[str],
    gold: Sequence[str],
    confidence: float = 0.95,
    num_resamples: int = 10_000,
    seed: int = 0,
) -> Comparison:
    """The difference of two macro F1 on the same questions, first minus second.

    Questions are drawn with replacement, both kinds of one together; the p-value is made as by
    `triax.scoring.significance.paired_bootstrap`.

    Raises:
        ValueError: as for `score_types`.
    """
    observed = score_types(first, gold).macro_f1 - score_types(second, gold).macro_f1
    place = {kind: number for number, kind in enumerate(QUESTION_TYPES)}
    size = len(QUESTION_TYPES)
    rows = np.array([[place[one] for one in column] for column in (gold, first, second)])
    cells = np.bincount(np.ravel_multi_index(tuple(rows), (size,) * 3), minlength=size**3)
    drawn = np.random.default_rng(seed).multinomial(
        len(gold), cells / len(gold), size=num_resamples
    )
    tables = drawn.reshape(num_resamples, size, size, size).astype(float)
    differences = _figures(tables.sum(axis=3))[0] - _figures(tables.sum(axis=2))[0]
    tail = (1 - confidence) / 2
    low, high = np.quantile(differences, [tail, 1 - tail])
    p_value = None
    if len(gold) > 1:
        # A rounding error must not turn a difference that is exactly as large into a smaller one.
        reach = abs(observed) * (1 - 1e-12) - 1e-15
        extreme = int(np.count_nonzero(np.abs(differences - observed) >= reach))
        p_value = (extreme + 1) / (num_resamples + 1)
    return Comparison(observed, float(low), float(high), p_value, len(gold))


def _figures(
    counts: Float[np.ndarray, "tables kinds kinds"],
) -> tuple[Float[np.ndarray, " tables"], Float[np.ndarray, " tables"]]:
    """Macro F1 and accuracy of each table [gold, told]."""
    hits = np.diagonal(counts, axis1=1, axis2=2)
    gold, told = counts.sum(axis=2), counts.sum(axis=1)
    f1 = np.divide(2 * hits, gold + told, out=np.zeros_like(gold), where=gold + told > 0)
    macro = (f1 * (gold > 0)).sum(axis=1) / (gold > 0).sum(axis=1)
    return macro, hits.sum(axis=1) / gold.sum(axis=1)
