"""The walk of T2RAG: propositions in order of score until enough chunks are reached."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Float32, Int64

from triax.indexing.tables import Sources


@dataclass(frozen=True, slots=True)
class Walk:
    """Visited proposition rows and reached chunk rows, best first, with their scores.

    A chunk's score is that of the proposition that reached it first, which is its best.
    """

    rows: tuple[int, ...] = ()
    scores: tuple[float, ...] = ()
    chunk_rows: tuple[int, ...] = ()
    chunk_scores: tuple[float, ...] = ()


def walk(
    rows: Int64[np.ndarray, "seen"],
    scores: Float32[np.ndarray, "seen"],
    sources: Sources,
    num_chunks: int,
    floor: float = 0.0,
) -> Walk:
    """Visits propositions by score, highest first, equal ones by row, until `num_chunks` are found.

    The rule of T2RAG's retrieval: whether enough chunks are found is asked before each step, so
    the proposition that reaches the last chunk is the last one visited; a score that is not above
    `floor` is skipped; every visited proposition is a hit even if it reaches nothing new. Where a
    proposition has several sources, all are reached, in row order, up to `num_chunks`.
    """
    visited: list[int] = []
    visited_scores: list[float] = []
    reached: dict[int, float] = {}
    for position in np.lexsort((rows, -scores)):
        score = float(scores[position])
        if len(reached) >= num_chunks or not score > floor:
            break
        row = int(rows[position])
        visited.append(row)
        visited_scores.append(score)
        for chunk in sources.of(row).tolist():
            if len(reached) < num_chunks:
                reached.setdefault(chunk, score)
    return Walk(tuple(visited), tuple(visited_scores), tuple(reached), tuple(reached.values()))


def exact_scores(
    vectors: Float[np.ndarray, "seen dimension"], queries: Float[np.ndarray, "queries dimension"]
) -> Float32[np.ndarray, "seen"]:
    """Best dot product of each row over the queries, in float64 and then rounded to float32.

    Matrix products in float32 differ in the last bits between libraries, devices and places in
    the matrix, which would decide ties. Rounded from float64, equal vectors have equal scores
    and all search engines agree (R18).
    """
    products = vectors.astype(np.float64) @ queries.astype(np.float64).T
    return products.max(axis=1).astype(np.float32)
