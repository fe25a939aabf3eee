"""Puts a pipeline together from parts that a configuration names.

Each part comes as a constructor that still lacks what only a run can give: the completer, the
index, the encoder. So a YAML file says what a method is, and a program what it runs on.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Literal

from triax.pipelines.charged import AskingFilter, Charged
from triax.pipelines.hybrid import Hybrid
from triax.pipelines.original import OriginalT2RAG
from triax.pipelines.t2rag import T2RAG
from triax.pipelines.vanilla import Vanilla
from triax.reasoning.decompose import Decomposer
from triax.reasoning.resolve import Resolver
from triax.reasoning.synthesize import Reader, Synthesizer
from triax.records.documents import Chunk
from triax.records.triplets import Extraction
from triax.records.verbs import Completer, Encoder, Pipeline, Retriever, Router
from triax.routing.rewriter import ChainRewriter

if TYPE_CHECKING:
    from triax.indexing.store import TripletIndex


@dataclass
class Parts:
    """What a run stands on. The index is opened when a part first asks for it.

    `open_index` gives the index; `read_extractions` the triplets as they were extracted, which
    only the original's search needs.
    """

    completer: Completer
    encoder: Encoder
    chunks: Sequence[Chunk]
    open_index: Callable[[], "TripletIndex"]
    read_extractions: Callable[[], Sequence[Extraction]]

    @cached_property
    def index(self) -> "TripletIndex":
        """The triplet index, opened once."""
        return self.open_index()


def closed_book(parts: Parts, *, reader: Callable[..., Reader]) -> Vanilla:
    """The model's own knowledge; asks no index."""
    return Vanilla(reader(completer=parts.completer), name="closed_book")


def bm25(parts: Parts, *, reader: Callable[..., Reader], num_chunks: int = 5) -> Vanilla:
    """The best chunks by BM25, then one reading call."""
    from triax.retrieval.bm25 import BM25Retriever

    retriever = BM25Retriever(parts.chunks)
    return Vanilla(reader(completer=parts.completer), retriever, num_chunks, "bm25")


def dense(parts: Parts, *, reader: Callable[..., Reader], num_chunks: int = 5) -> Vanilla:
    """The nearest chunks by their vectors, then one reading call."""
    from triax.retrieval.dense import DenseRetriever

    retriever = DenseRetriever(parts.index, parts.encoder)
    return Vanilla(reader(completer=parts.completer), retriever, num_chunks, "dense")


def graph(
    parts: Parts,
    *,
    retriever: Callable[..., Retriever],
    reader: Callable[..., Reader],
    num_chunks: int = 5,
    name: str = "hipporag2",
) -> Vanilla | Charged:
    """The best chunks by a walk over the graph of triplets, then one reading call.

    A triplet filter that asks a model comes without its completer, as an argument of the retriever
    that is given already.
    """
    asking = _asking_filter(parts, retriever)
    filtered = {"triplet_filter": asking} if asking else {}
    found = retriever(index=parts.index, encoder=parts.encoder, **filtered)
    pipeline = Vanilla(reader(completer=parts.completer), found, num_chunks, name)
    return Charged(pipeline, asking) if asking else pipeline


def hybrid(
    parts: Parts,
    *,
    router: Callable[..., Router] | Router,
    vanilla: Callable[[Parts], Pipeline],
    graph: Callable[[Parts], Pipeline],
    rewriter: Callable[..., Decomposer] | None = None,
    rewrite_threshold: float = 0.6,
) -> Hybrid:
    """A router before two pipelines; see `triax.pipelines.hybrid.Hybrid` for the arguments.

    A router that asks a model, and the rewriter's decomposer, come without their completer; a
    router that searches has a retriever that comes without its index.
    """
    return Hybrid(
        _made(router, parts),
        vanilla(parts),
        graph(parts),
        ChainRewriter(rewriter(completer=parts.completer)) if rewriter else None,
        rewrite_threshold,
    )


def _made(router: Callable[..., Router] | Router, parts: Parts) -> Router:
    if not isinstance(router, partial):
        return router
    searching = router.keywords.get("retriever")
    found = {"retriever": searching(index=parts.index, encoder=parts.encoder)} if searching else {}
    return router(completer=parts.completer, **found)


def t2rag(
    parts: Parts,
    *,
    decomposer: Callable[..., Decomposer],
    resolver: Callable[..., Resolver],
    synthesizer: Callable[..., Synthesizer],
    retriever: Callable[..., Retriever],
    num_chunks: int = 5,
    max_rounds: int = 3,
    question_query: Literal["when_empty", "always", "never"] = "when_empty",
    max_calls: int | None = None,
    max_tokens: int | None = None,
) -> T2RAG:
    """T2RAG with the paper's semantics; see `triax.pipelines.t2rag.T2RAG` for the arguments.

    Raises:
        ValueError: the retriever has a triplet filter that asks a model.
    """
    if _asking_filter(parts, retriever):
        # Its calls would be on nobody's bill: a search of a round knows no question.
        raise ValueError(
            "t2rag counts the calls of each question, which it cannot for a triplet filter that "
            "asks a model in the search; take triplet_filter=trained or none"
        )
    return T2RAG(
        retriever(index=parts.index, encoder=parts.encoder),
        decomposer(completer=parts.completer),
        resolver(completer=parts.completer),
        synthesizer(completer=parts.completer),
        num_chunks,
        max_rounds,
        question_query,
        max_calls,
        max_tokens,
    )


def t2rag_reference(parts: Parts, *, num_chunks: int = 5, max_rounds: int = 3) -> OriginalT2RAG:
    """T2RAG with the semantics of its released code, its search included."""
    from triax.retrieval.original import OriginalRetriever

    chunks = {chunk.id: chunk for chunk in parts.chunks}
    retriever = OriginalRetriever(chunks, parts.read_extractions(), parts.encoder)
    return OriginalT2RAG(retriever, parts.completer, num_chunks, max_rounds)


def _asking_filter(parts: Parts, retriever: Callable[..., Retriever]) -> AskingFilter | None:
    """The retriever's triplet filter with its completer, if it has one that lacks it."""
    given = retriever.keywords if isinstance(retriever, partial) else {}
    found = given.get("triplet_filter")
    return found(completer=parts.completer) if isinstance(found, partial) else None
