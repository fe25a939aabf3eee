"""Several rounds of evidence become one ranking."""

from collections.abc import Sequence

from triax.records.evidence import Evidence


def merge_chunks(evidences: Sequence[Evidence]) -> tuple[str, ...]:
    """Chunk ids by their best score over all rounds, ties by first appearance (as in IRCoT)."""
    best: dict[str, float] = {}
    for evidence in evidences:
        for found in evidence.chunks:
            best[found.chunk.id] = max(found.score, best.get(found.chunk.id, float("-inf")))
    return tuple(sorted(best, key=lambda chunk_id: -best[chunk_id]))
