import asyncio
from dataclasses import dataclass
from functools import partial

import pytest

from triax.extraction.verbalize import propositions
from triax.indexing.hashing import HashingEncoder
from triax.indexing.updates import build_index
from triax.llm.scripted import ScriptedCompleter
from triax.pipelines.assembly import Parts, assemble
from triax.pipelines.hybrid import Hybrid
from triax.pipelines.original import OriginalT2RAG
from triax.pipelines.t2rag import T2RAG
from triax.pipelines.vanilla import Vanilla
from triax.reasoning.decompose import GoldDecomposer, PromptedDecomposer
from triax.reasoning.resolve import FillingResolver
from triax.reasoning.synthesize import PromptedReader, PromptedSynthesizer
from triax.records.documents import Chunk
from triax.records.query_triplets import QueryTriplet
from triax.records.questions import Question
from triax.records.triplets import Extraction, Triplet
from triax.records.usage import Usage
from triax.retrieval.asked_filter import LlmTripletFilter
from triax.retrieval.bm25 import BM25Retriever
from triax.retrieval.dense import DenseRetriever
from triax.retrieval.graph import open_graph_retriever
from triax.retrieval.original import OriginalRetriever, open_original_retriever
from triax.retrieval.triplet_filter import Kept
from triax.routing.gated import RetrievalGate
from triax.routing.rewriter import ChainRewriter

CHUNKS = [
    Chunk("a", "a", "Vertigo is a film by Hitchcock.", "Vertigo"),
    Chunk("b", "b", "Stalker is a film by Tarkovsky.", "Stalker"),
]
FACTS = [
    Extraction("a", (Triplet("Vertigo", "directed by", "Hitchcock"),)),
    Extraction("b", (Triplet("Stalker", "directed by", "Tarkovsky"),)),
]
QUESTION = Question(
    "q",
    "Who directed Vertigo?",
    gold_query_triplets=(QueryTriplet.parse("Vertigo", "directed by", "?who"),),
)
READER = partial(PromptedReader)


def parts(answers, **given):
    def never():
        raise AssertionError("opened in vain")

    given = {"open_index": never, "read_extractions": never} | given
    return Parts(ScriptedCompleter(answers), HashingEncoder(64), CHUNKS, **given)


@pytest.fixture
def indexed(tmp_path):
    def make(answers):
        index = build_index(
            CHUNKS, propositions(FACTS), HashingEncoder(64), tmp_path / "index", extractor="toy"
        )
        return parts(answers, open_index=lambda: index)

    return make


def ask(pipeline):
    [trace] = asyncio.run(pipeline.answer([QUESTION]))
    assert trace.error is None
    return trace


def test_closed_book_opens_no_index():
    trace = ask(assemble(partial(Vanilla, READER), parts(["Hitchcock"])))
    assert (trace.pipeline, trace.answer, trace.chunk_ids) == ("closed_book", "Hitchcock", ())


def test_bm25_gets_the_chunks_and_opens_no_index():
    bm25 = partial(Vanilla, reader=READER, retriever=partial(BM25Retriever), num_chunks=1)
    assert ask(assemble(bm25, parts(["Hitchcock"]))).chunk_ids == ("a",)


def test_index_and_extractions_are_opened_once():
    opened = []

    def open_one():
        opened.append(1)
        return FACTS

    given = parts([], open_index=open_one, read_extractions=open_one)
    assert opened == []
    assert given.index is given.index and given.extractions is given.extractions
    assert opened == [1, 1]


@pytest.mark.parametrize("decomposer", [partial(GoldDecomposer), GoldDecomposer()])
def test_t2rag_gives_each_part_what_it_takes(decomposer):
    asked = {}

    def retriever(index, encoder):
        asked.update(index=index, encoder=encoder)
        return OriginalRetriever({chunk.id: chunk for chunk in CHUNKS}, FACTS, encoder)

    given = parts(["Hitchcock", "Hitchcock"], open_index=lambda: "the index")
    pipeline = assemble(
        partial(
            T2RAG,
            retriever=partial(retriever),
            decomposer=decomposer,
            resolver=partial(FillingResolver, max_tokens=8),
            synthesizer=partial(PromptedSynthesizer),
            num_chunks=1,
            question_query="never",
        ),
        given,
    )
    assert asked == {"index": "the index", "encoder": given.encoder}
    assert (pipeline.num_chunks, pipeline.max_rounds, pipeline.resolver.max_tokens) == (1, 3, 8)
    trace = ask(pipeline)
    assert (trace.answer, trace.stop_reason, trace.chunk_ids) == ("Hitchcock", "resolved", ("a",))


def test_the_original_reads_the_extractions():
    answers = ["Triples:\nVertigo | directed by | ?", "no clue", "Answer: Hitchcock"]
    given = parts(answers, read_extractions=lambda: FACTS)
    trace = ask(assemble(partial(OriginalT2RAG, retriever=partial(open_original_retriever)), given))
    assert (trace.pipeline, trace.answer) == ("t2rag_reference", "Hitchcock")
    assert trace.chunk_ids[:1] == ("a",)


def test_what_no_run_gives_is_named():
    with pytest.raises(TypeError, match="Vanilla lacks reader, which no run gives"):
        assemble(partial(Vanilla), parts([]))


def test_a_factory_among_the_arguments_stays_one():
    """A search engine lacks the vectors, which its retriever has."""

    @dataclass
    class Owner:
        engine: partial
        completer: object

    def engine(vectors, sources, depth):
        return vectors, sources, depth

    factory = partial(engine, depth=2)
    given = parts([])
    made = assemble(partial(Owner, engine=factory), given)
    assert made.engine is factory and made.completer is given.completer


def test_parts_in_lists_and_mappings_are_made_too():
    @dataclass
    class Owner:
        readers: dict
        order: list

    made = assemble(
        partial(Owner, readers={"a": READER, "b": 1}, order=[READER, "x"]), parts(["ok"])
    )
    assert isinstance(made.readers["a"], PromptedReader) and made.readers["b"] == 1
    assert isinstance(made.order[0], PromptedReader) and made.order[1] == "x"


def test_what_the_texts_of_an_index_cost_is_noted():
    class Summarised:
        index_cost = Usage(calls=3, prompt_tokens=30)

        def __init__(self, completer):
            pass

        def search(self, groups, num_chunks):
            return []

    given = parts([])
    pipeline = partial(Vanilla, reader=READER, retriever=partial(Summarised))
    assemble(pipeline, given)
    assert list(given.index_costs.values()) == [Usage(calls=3, prompt_tokens=30)]


def test_dense_and_graph_get_the_index_and_graph_reads_its_triplets(indexed):
    for retriever, reads in ((DenseRetriever, False), (open_graph_retriever, True)):
        given = indexed(["Hitchcock"])
        pipeline = partial(Vanilla, reader=READER, retriever=partial(retriever), num_chunks=1)
        trace = ask(assemble(pipeline, given))
        assert (trace.chunk_ids, trace.answer) == (("a",), "Hitchcock")
        assert given.reads_triplets is reads


def graph_with(triplet_filter):
    retriever = partial(open_graph_retriever, triplet_filter=triplet_filter)
    return partial(Vanilla, reader=READER, retriever=retriever, num_chunks=1)


def test_a_filter_that_asks_gets_the_completer_and_is_paid_for(indexed):
    """The index links "directed by" of both films; the filter keeps that of Stalker alone."""
    given = indexed(['{"triplets": [["Stalker", "directed by", "Tarkovsky"]]}', "T"])
    trace = ask(assemble(graph_with(partial(LlmTripletFilter)), given))
    assert (trace.chunk_ids, trace.answer) == (("b",), "T")
    assert [one.stage for one in given.completer.requests] == ["filter", "read"]
    assert trace.usage.calls == 2


def test_a_filter_that_is_whole_stays_as_it_is(indexed):
    class KeepsNone:
        def keep(self, groups, candidates):
            return [Kept(()) for _ in groups]

    trace = ask(assemble(graph_with(KeepsNone()), indexed(["Hitchcock"])))
    assert (trace.chunk_ids, trace.usage.calls) == (("a",), 1)


def test_t2rag_pays_for_a_filter_that_asks(indexed):
    """One call of the filter, one of the resolver, one for the answer."""
    pipeline = partial(
        T2RAG,
        retriever=partial(open_graph_retriever, triplet_filter=partial(LlmTripletFilter)),
        decomposer=partial(GoldDecomposer),
        resolver=partial(FillingResolver),
        synthesizer=partial(PromptedSynthesizer),
        num_chunks=1,
    )
    given = indexed(['{"triplets": [["Vertigo", "directed by", "Hitchcock"]]}', "Hitchcock", "H"])
    trace = ask(assemble(pipeline, given))
    assert (trace.usage.calls, trace.answer, trace.stop_reason) == (3, "H", "resolved")


def test_a_router_that_searches_gets_the_index(indexed):
    sides = {side: partial(Vanilla, reader=READER) for side in ("vanilla", "graph")}
    for threshold, route in ((-1.0, "vanilla"), (2.0, "graph")):
        router = partial(
            RetrievalGate, retriever=partial(DenseRetriever), signal="top", threshold=threshold
        )
        trace = ask(assemble(partial(Hybrid, router=router, **sides), indexed(["Hitchcock"] * 2)))
        assert (trace.answer, trace.routing.route) == ("Hitchcock", route)


def test_a_rewriter_gets_its_decomposer(indexed):
    rewriter = partial(ChainRewriter, decomposer=partial(PromptedDecomposer, max_tokens=9))
    assert assemble(rewriter, indexed([])).decomposer.max_tokens == 9
