"""Exact search for groups of queries, whichever engine finds the candidates."""

from collections.abc import Callable, Sequence
from typing import Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float, Float32, Int64

from triax.indexing.tables import Sources
from triax.indexing.walk import Walk, exact_scores, walk

Candidates = tuple[Int64[np.ndarray, "found"], float]


@runtime_checkable
class Engine(Protocol):
    """Finds the rows that may matter; their exact scores and order are settled by `search`."""

    def nearest(
        self, groups: Sequence[Float32[np.ndarray, "_ dimension"]], depth: int
    ) -> list[Candidates]:
        """For each group at least the `depth` rows with the best score over its queries.

        With them a bound: no row that is missing has a higher score; -inf if none is missing.
        """
        ...

    def deepen(
        self,
        groups: Sequence[Float32[np.ndarray, "_ dimension"]],
        num_chunks: int,
        depth: int,
        floor: float,
    ) -> int:
        """A greater depth to try, since `depth` did not settle these groups (see `search`)."""
        ...


EngineFactory = Callable[[np.ndarray, Sources], Engine]


def search(
    vectors: Float[np.ndarray, "rows dimension"],
    sources: Sources,
    groups: Sequence[Float32[np.ndarray, "_ dimension"]],
    num_chunks: int,
    engine: Engine,
    floor: float = 0.0,
    depth: int | None = None,
) -> list[Walk]:
    """The walk of each group over all rows, of which only the needed ones are looked at.

    A walk over candidates is the walk over everything once all its scores lie above what the
    missing rows can have; until then the engine is asked for more.

    Args:
        vectors: of the propositions, or of chunks with `Sources.identity`.
        sources: which chunks a row reaches.
        groups: query vectors; those of a group share one pool. An empty group finds nothing.
        num_chunks: where a walk stops.
        engine: finds candidates.
        floor: rows with no higher score are skipped.
        depth: candidates asked for at first; 4 a chunk if None, and at least 64.
    """
    walks = [Walk()] * len(groups)
    pending = [i for i, group in enumerate(groups) if len(group) and len(vectors)]
    depth = depth or power_of_two(max(64, 4 * num_chunks))
    while pending and num_chunks > 0:
        found = engine.nearest([groups[i] for i in pending], depth)
        unsettled = []
        for i, (rows, bound) in zip(pending, found):
            scores = exact_scores(vectors[rows], groups[i])
            walks[i] = walk(rows, scores, sources, num_chunks, floor)
            if not _settled(walks[i], bound, num_chunks, floor, groups[i]):
                unsettled.append(i)
        pending = unsettled
        if pending:
            depth = engine.deepen([groups[i] for i in pending], num_chunks, depth, floor)
    return walks


def slack(group: Float32[np.ndarray, "queries dimension"]) -> float:
    """How far a float32 product of vectors of length 1 and these queries may be off."""
    longest = float(np.linalg.norm(group, axis=1).max(initial=1.0))
    return 1e-6 * float(np.sqrt(group.shape[1])) * longest


def power_of_two(count: int) -> int:
    """The least power of two that is at least `count`: few sizes mean few compilations."""
    return 1 << max(0, count - 1).bit_length()


def _settled(
    found: Walk,
    bound: float,
    num_chunks: int,
    floor: float,
    group: Float32[np.ndarray, "queries dimension"],
) -> bool:
    if bound <= floor:
        return True
    return len(found.chunk_rows) >= num_chunks and found.scores[-1] > bound + slack(group)
