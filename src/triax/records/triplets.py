"""Triplets, what an extractor says of a chunk, and propositions with all their sources."""

from dataclasses import dataclass
from typing import Literal

ExtractionStatus = Literal["ok", "partial", "empty", "failed"]


@dataclass(frozen=True, slots=True)
class Triplet:
    """(subject, predicate, object), each a non-empty text. `confidence` is in [0, 1] or unknown."""

    subject: str
    predicate: str
    object: str
    confidence: float | None = None

    @property
    def fields(self) -> tuple[str, str, str]:
        """The three texts, without the confidence: what makes two triplets the same."""
        return (self.subject, self.predicate, self.object)


@dataclass(frozen=True, slots=True)
class Extraction:
    """What an extractor found in one chunk, and whether that is the whole of it (R2).

    `ok`: every part of the answer was a triplet; `partial`: some parts were dropped or cut;
    `empty`: a sound answer with no triplet; `failed`: no answer, or none that can be read.
    """

    chunk_id: str
    triplets: tuple[Triplet, ...]
    entities: tuple[str, ...] = ()
    status: ExtractionStatus = "ok"
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Proposition:
    """A triplet as a sentence, with every chunk that states it (R27)."""

    id: str
    triplet: Triplet
    text: str
    chunk_ids: tuple[str, ...]
