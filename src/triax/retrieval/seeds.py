"""From scores of triplets to the phrases at which a walk over the graph starts (HippoRAG 2)."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float, Float32, Int32, Int64

_GRID = 1e-6  # scores closer than this are equal: rounding in a product decides no tie (R18)


def min_max(scores: Float32[np.ndarray, "groups rows"]) -> Float32[np.ndarray, "groups rows"]:
    """Each group's scores, stretched to [0, 1].

    Where all are equal, all are 1, or all 0 if none is above 0: then nothing fits.
    """
    if not scores.shape[1]:
        return scores
    low, high = scores.min(axis=1, keepdims=True), scores.max(axis=1, keepdims=True)
    spread = high - low
    stretched = (scores - low) / np.where(spread > _GRID, spread, 1)
    return np.where(spread > _GRID, stretched, high > 0).astype(np.float32)


def best_rows(scores: Float32[np.ndarray, "rows"], count: int) -> Int64[np.ndarray, "best"]:
    """The `count` rows of the highest scores above 0, best first, equal ones by row."""
    rows = np.flatnonzero(scores > 0)
    if len(rows) > count > 0:
        last = np.partition(scores[rows], len(rows) - count)[len(rows) - count]
        rows = rows[scores[rows] >= last - 2 * _GRID]
    return rows[np.lexsort((rows, -np.round(scores[rows] / _GRID)))][: max(0, count)]


def seed_phrases(
    linked: Sequence[int] | Int64[np.ndarray, "linked"],
    scores: Float[np.ndarray, "linked"],
    subjects: Int32[np.ndarray, "propositions"],
    objects: Int32[np.ndarray, "propositions"],
    chunk_counts: Int32[np.ndarray, "phrases"],
    num_seeds: int,
    divides: bool = True,
) -> tuple[Int64[np.ndarray, "seeds"], Float32[np.ndarray, "seeds"]]:
    """The best phrases of some triplets, and their weights, best first.

    A phrase weighs the mean, over its places in these triplets, of the triplet's score, divided
    by the number of chunks that the phrase occurs in: a phrase of many chunks says little. The
    paper has no such division, the released code does.

    Args:
        linked: proposition rows.
        scores: of those rows.
        subjects, objects, chunk_counts: of the graph.
        num_seeds: how many phrases are kept, equal weights in the order of phrases.
        divides: whether to divide by the number of chunks.
    """
    linked = np.asarray(linked, np.int64)
    phrases = np.concatenate([subjects[linked], objects[linked]]).astype(np.int64)
    values = np.concatenate([scores, scores]).astype(np.float64)
    values, phrases = values[phrases >= 0], phrases[phrases >= 0]
    if divides:
        values = values / np.maximum(chunk_counts[phrases], 1)
    found, inverse, places = np.unique(phrases, return_inverse=True, return_counts=True)
    weights = np.bincount(inverse, values, minlength=len(found)) / places
    order = np.lexsort((found, -weights))[:num_seeds]
    order = order[weights[order] > 0]
    return found[order], weights[order].astype(np.float32)
