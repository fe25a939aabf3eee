"""What a search brings back."""

from dataclasses import dataclass

from triax.records.documents import Chunk
from triax.records.triplets import Proposition


@dataclass(frozen=True, slots=True)
class Hit:
    """A found proposition. `chunk_ids` are those of its sources that entered the result."""

    proposition: Proposition
    score: float
    chunk_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ScoredChunk:
    """A found chunk and its score, comparable within one search only."""

    chunk: Chunk
    score: float


@dataclass(frozen=True, slots=True)
class Evidence:
    """Ranked chunks, and the ranked propositions that led to them (none for chunk retrievers)."""

    chunks: tuple[ScoredChunk, ...] = ()
    hits: tuple[Hit, ...] = ()
