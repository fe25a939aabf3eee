"""Several rankings become one by their ranks: reciprocal rank fusion (Cormack et al., 2009)."""

from collections.abc import Sequence

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
    sums: dict[str, float] = {}
    chunks = {}
    for ranking in rankings:
        for rank, found in enumerate(ranking, 1):
            chunks[found.chunk.id] = found.chunk
            sums[found.chunk.id] = sums.get(found.chunk.id, 0.0) + 1 / (k + rank)
    order = sorted(sums, key=lambda name: (-sums[name], name))
    return tuple(ScoredChunk(chunks[name], sums[name]) for name in order)
