"""The verbs of the house as protocols: what a room asks for, whoever provides it."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, Protocol, runtime_checkable

from triax.records.completions import Completion, CompletionRequest
from triax.records.documents import Chunk
from triax.records.evidence import Evidence
from triax.records.questions import Question
from triax.records.readings import Reading, ReadRequest
from triax.records.routes import Routing
from triax.records.traces import Trace
from triax.records.triplets import Extraction
from triax.records.usage import Usage

if TYPE_CHECKING:
    import numpy as np

TextRole = Literal["query", "passage"]


@runtime_checkable
class Completer(Protocol):
    """Completes many requests at once, in order; a failed one is a Completion with an error."""

    model: str

    async def complete(self, requests: Sequence[CompletionRequest]) -> list[Completion]: ...


@runtime_checkable
class Encoder(Protocol):
    """Embeds texts as float32 rows [len(texts), dimension] of length 1."""

    name: str
    dimension: int

    def encode(self, texts: Sequence[str], role: TextRole = "passage") -> "np.ndarray": ...


@runtime_checkable
class Retriever(Protocol):
    """Finds evidence for many questions at once.

    Each question is a group of one or more query texts that share one global pool: a chunk's
    score is its best over the group.
    """

    def search(self, groups: Sequence[Sequence[str]], num_chunks: int) -> list[Evidence]: ...


@runtime_checkable
class Compressor(Protocol):
    """Fits the evidence of each group of queries into a budget, the most useful first."""

    def compress(
        self, groups: Sequence[Sequence[str]], evidences: Sequence[Evidence]
    ) -> list[Evidence]: ...


@runtime_checkable
class TokenCounter(Protocol):
    """Counts texts in tokens, as a model would; `cut` gives the longest beginning that fits."""

    def count(self, texts: Sequence[str]) -> list[int]: ...

    def cut(self, text: str, max_tokens: int) -> str: ...


@runtime_checkable
class Extractor(Protocol):
    """Reads triplets out of chunks; one bad chunk is one failed extraction (R3)."""

    name: str

    async def extract(self, chunks: Sequence[Chunk]) -> list[Extraction]: ...


@runtime_checkable
class Pipeline(Protocol):
    """Answers many questions together; one that fails is a Trace with an error."""

    name: str

    async def answer(self, questions: Sequence[Question]) -> list[Trace]: ...


@runtime_checkable
class PassageReader(Protocol):
    """Finds the answers of many queries in their passages, in order; None where there is none.

    `allows_verdicts` says that yes and no are answers too.
    """

    name: str

    def read(
        self, requests: Sequence[ReadRequest], *, allows_verdicts: bool = False
    ) -> list[Reading | None]: ...


@runtime_checkable
class Router(Protocol):
    """Sends each question to vanilla or to graph retrieval, in order."""

    name: str

    async def route(self, questions: Sequence[Question]) -> list[Routing]: ...


@runtime_checkable
class QueryRewriter(Protocol):
    """Gives each question a text to search with, "" to keep the question, and what it cost."""

    async def rewrite(self, questions: Sequence[Question]) -> list[tuple[str, Usage]]: ...
