"""Several rounds of evidence become one ranking."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TypeVar

from triax.records.evidence import Evidence, Hit, ScoredChunk, ScoredNote
from triax.records.usage import Usage

ORDERS = ("score", "round")
Scored = TypeVar("Scored", ScoredChunk, Hit, ScoredNote)


def merge_chunks(evidences: Sequence[Evidence]) -> tuple[str, ...]:
    """Chunk ids by their best score over all rounds, ties by first appearance (as in IRCoT)."""
    return tuple(found.chunk.id for found in merge_evidence(evidences).chunks)


def merge_evidence(
    evidences: Sequence[Evidence], max_chunks: int | None = None, order: str = "score"
) -> Evidence:
    """One evidence of all rounds: each chunk, hit and note once, with its best score.

    Args:
        evidences: of the rounds, in their order.
        max_chunks: how many chunks stay; None keeps all.
        order: by `score`, ties by first appearance, or by `round`: as they were found. Scores of
            rounds that searched with queries of other lengths compare badly, those of BM25 above
            all.

    Returns:
        The merged evidence. The chunk ids of its hits are those that stayed, its usage is the sum.

    Raises:
        ValueError: an unknown order.
    """
    if order not in ORDERS:
        raise ValueError(f"order is {order!r}, expected one of {ORDERS}")
    chunks: dict[str, ScoredChunk] = {}
    hits: dict[str, Hit] = {}
    notes: dict[str, ScoredNote] = {}
    for evidence in evidences:
        for found in evidence.chunks:
            known = chunks.setdefault(found.chunk.id, found)
            chunks[found.chunk.id] = replace(known, score=max(known.score, found.score))
        for hit in evidence.hits:
            seen = hits.setdefault(hit.proposition.id, hit)
            sources = tuple(dict.fromkeys(seen.chunk_ids + hit.chunk_ids))
            best = max(seen.score, hit.score)
            hits[hit.proposition.id] = replace(seen, score=best, chunk_ids=sources)
        for note in evidence.notes:
            told = notes.setdefault(note.note.id, note)
            notes[note.note.id] = replace(told, score=max(told.score, note.score))
    kept = _ordered(chunks.values(), order)[:max_chunks]
    ids = {found.chunk.id for found in kept}
    return Evidence(
        chunks=tuple(kept),
        hits=tuple(
            replace(hit, chunk_ids=tuple(one for one in hit.chunk_ids if one in ids))
            for hit in _ordered(hits.values(), order)
        ),
        notes=tuple(_ordered(notes.values(), order)),
        usage=sum((evidence.usage for evidence in evidences), Usage()),
    )


def _ordered(found: Iterable[Scored], order: str) -> list[Scored]:
    return sorted(found, key=lambda one: -one.score) if order == "score" else list(found)
