"""What a search brings back."""

from dataclasses import dataclass

from triax.records.documents import Chunk
from triax.records.triplets import Proposition
from triax.records.usage import Usage


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
class Note:
    """A text that a method made of chunks: a summary, a community report, a description.

    `chunk_ids` are the chunks that it was made of, as far as the method knows them.
    """

    id: str
    text: str
    title: str = ""
    chunk_ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ScoredNote:
    """A found note and its score, comparable within one search only."""

    note: Note
    score: float


@dataclass(frozen=True, slots=True)
class Evidence:
    """Ranked chunks, the ranked propositions that led to them, and notes, each best first.

    Chunk retrievers bring chunks only. `usage` is what the search asked of a language model.
    """

    chunks: tuple[ScoredChunk, ...] = ()
    hits: tuple[Hit, ...] = ()
    notes: tuple[ScoredNote, ...] = ()
    usage: Usage = Usage()

    @property
    def texts(self) -> tuple[str, ...]:
        """What is shown beside the chunks: notes, then propositions."""
        return (
            *(f"{one.note.title}\n{one.note.text}".strip() for one in self.notes),
            *(hit.proposition.text for hit in self.hits),
        )
