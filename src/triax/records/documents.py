"""Documents as they come and chunks as they are searched."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Document:
    """One text of a corpus. `id` is unique in its corpus; `title` may repeat."""

    id: str
    text: str
    title: str = ""
    metadata: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Chunk:
    """A span of a document that is read, searched and cited as one piece.

    `start` is the character position of `text` in the document's text. A document that fits one
    chunk gives a chunk with the document's own id.
    """

    id: str
    document_id: str
    text: str
    title: str = ""
    start: int = 0

    @property
    def passage(self) -> str:
        """Title, newline, text: the form that T2RAG and HippoRAG embed and show to a model."""
        return f"{self.title}\n{self.text}" if self.title else self.text
