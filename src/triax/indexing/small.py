"""Exact search over few rows, and the choice between it and the search in JAX."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float, Float32

from triax.indexing.search import Candidates, Engine
from triax.indexing.tables import Sources

# Up to here numpy takes less time than JAX takes to compile; beyond, a device is worth it.
SMALL = 2000


class NumpySearch:
    """The engine for few rows: one matrix product in numpy."""

    def __init__(self, vectors: Float[np.ndarray, "rows dimension"], sources: Sources) -> None:
        """Keeps the rows in float32."""
        self._vectors = np.asarray(vectors, np.float32)

    def nearest(
        self, groups: Sequence[Float32[np.ndarray, "_ dimension"]], depth: int
    ) -> list[Candidates]:
        """The `depth` best rows of each group, in no order."""
        # One product for all groups: threads make many small ones slow.
        products = np.concatenate(groups) @ self._vectors.T
        starts = np.cumsum([0, *(len(group) for group in groups[:-1])])
        results: list[Candidates] = []
        for scores in np.maximum.reduceat(products, starts, axis=0):
            if depth >= len(scores):
                results.append((np.arange(len(scores), dtype=np.int64), -np.inf))
            else:
                rows = np.argpartition(-scores, depth - 1)[:depth].astype(np.int64)
                results.append((rows, float(scores[rows].min())))
        return results

    def deepen(
        self,
        groups: Sequence[Float32[np.ndarray, "_ dimension"]],
        num_chunks: int,
        depth: int,
        floor: float,
    ) -> int:
        """Four times the depth: all rows are soon reached."""
        return 4 * depth


def default_engine(vectors: Float[np.ndarray, "rows dimension"], sources: Sources) -> Engine:
    """Numpy where rows are few, else the flat search in JAX. Both give the same result."""
    if len(vectors) <= SMALL:
        return NumpySearch(vectors, sources)
    # JAX is imported where it is needed only.
    from triax.indexing.flat import FlatSearch

    return FlatSearch(vectors, sources)
