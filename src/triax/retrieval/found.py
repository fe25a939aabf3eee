"""Walks over rows become evidence: records with their texts."""

from triax.indexing.tables import TripletTables
from triax.indexing.walk import Walk
from triax.records.evidence import Evidence, Hit, ScoredChunk


def triplet_evidence(tables: TripletTables, found: Walk) -> Evidence:
    """Hits and chunks of a walk over propositions.

    A hit names those of its sources that entered the result: all of them, except where the last
    hit had more than there was room for.
    """
    entered = set(found.chunk_rows)
    hits = tuple(
        Hit(
            tables.proposition(row),
            score,
            tuple(tables.chunk_id(c) for c in tables.sources.of(row).tolist() if c in entered),
        )
        for row, score in zip(found.rows, found.scores)
    )
    return Evidence(chunk_evidence(tables, found).chunks, hits)


def chunk_evidence(tables: TripletTables, found: Walk) -> Evidence:
    """The chunks of a walk, without hits."""
    scored = zip(found.chunk_rows, found.chunk_scores)
    return Evidence(tuple(ScoredChunk(tables.chunk(row), score) for row, score in scored))
