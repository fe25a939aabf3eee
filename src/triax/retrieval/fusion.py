"""Several rankings become one by their ranks: reciprocal rank fusion (Cormack et al., 2009)."""

from collections.abc import Sequence
from math import fsum

from triax.records.evidence import ScoredChunk

K = 60


def fuse(rankings: Sequence[Sequence[ScoredChunk]], k: int = K) -> tuple[ScoredChunk, ...]:
    """Each chunk scores the sum of 1 / (k + rank) over the rankings that have it, best first.

    Equal sums are in order of chunk ids, so that the order of the rankings decides nothing.

    >>> from triax.records.documents import Chunk
    >>> a, b = (ScoredChunk(Chunk(name, name, ""), 1.0) for name in "ab")
    >>> [(one.chunk.id, round(one.score, 4)) for one in fuse([[a, b], [b]])]
    [('b', 0.0325), ('a', 0.0164)]
    """
    parts: dict[str, list[float]] = {}
    chunks = {}
    for ranking in rankings:
        for rank, found in enumerate(ranking, 1):
            chunks[found.chunk.id] = found.chunk
            parts.setdefault(found.chunk.id, []).append(1 / (k + rank))
    # Rounded once, so that the order of the terms decides nothing either.
    sums = {name: fsum(terms) for name, terms in parts.items()}
    order = sorted(sums, key=lambda name: (-sums[name], name))
    return tuple(ScoredChunk(chunks[name], sums[name]) for name in order)
