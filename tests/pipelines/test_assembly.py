import asyncio
from functools import partial

import pytest

from triax.indexing.hashing import HashingEncoder
from triax.llm.scripted import ScriptedCompleter
from triax.pipelines import assembly
from triax.reasoning.decompose import GoldDecomposer, PromptedDecomposer
from triax.reasoning.resolve import FillingResolver
from triax.reasoning.synthesize import PromptedReader, PromptedSynthesizer
from triax.records.documents import Chunk
from triax.records.query_triplets import QueryTriplet
from triax.records.questions import Question
from triax.records.triplets import Extraction, Triplet

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


def parts(answers, **given):
    def never():
        raise AssertionError("opened in vain")

    given = {"open_index": never, "read_extractions": never} | given
    return assembly.Parts(ScriptedCompleter(answers), HashingEncoder(64), CHUNKS, **given)


def ask(pipeline):
    [trace] = asyncio.run(pipeline.answer([QUESTION]))
    assert trace.error is None
    return trace


def test_closed_book_opens_no_index():
    trace = ask(assembly.closed_book(parts(["Hitchcock"]), reader=PromptedReader))
    assert (trace.pipeline, trace.answer, trace.chunk_ids) == ("closed_book", "Hitchcock", ())


def test_bm25_opens_no_triplet_index():
    trace = ask(assembly.bm25(parts(["Hitchcock"]), reader=PromptedReader, num_chunks=1))
    assert (trace.pipeline, trace.chunk_ids) == ("bm25", ("a",))


def test_the_index_is_opened_once():
    opened = []

    def open_index():
        opened.append(1)
        return object()

    given = parts([], open_index=open_index)
    assert opened == []
    assert given.index is given.index
    assert opened == [1]


@pytest.mark.parametrize("decomposer", [GoldDecomposer, partial(GoldDecomposer)])
def test_t2rag_gives_each_part_the_completer(decomposer):
    from triax.retrieval.original import OriginalRetriever

    asked = {}

    def retriever(index, encoder):
        asked.update(index=index, encoder=encoder)
        return OriginalRetriever({chunk.id: chunk for chunk in CHUNKS}, FACTS, encoder)

    given = parts(["Hitchcock", "Hitchcock"], open_index=lambda: "the index")
    pipeline = assembly.t2rag(
        given,
        decomposer=decomposer,
        resolver=partial(FillingResolver, max_tokens=8),
        synthesizer=PromptedSynthesizer,
        retriever=retriever,
        num_chunks=1,
        max_rounds=2,
        question_query="never",
        max_calls=7,
        max_tokens=700,
    )
    assert asked == {"index": "the index", "encoder": given.encoder}
    assert (pipeline.num_chunks, pipeline.max_rounds, pipeline.question_query) == (1, 2, "never")
    assert (pipeline.max_calls, pipeline.max_tokens) == (7, 700)
    trace = ask(pipeline)
    assert (trace.answer, trace.stop_reason, trace.chunk_ids) == ("Hitchcock", "resolved", ("a",))


def test_t2rag_reference_reads_the_extractions():
    answers = ["Triples:\nVertigo | directed by | ?", "no clue", "Answer: Hitchcock"]
    given = parts(answers, read_extractions=lambda: FACTS)
    trace = ask(assembly.t2rag_reference(given, num_chunks=1, max_rounds=3))
    assert (trace.pipeline, trace.answer) == ("t2rag_reference", "Hitchcock")
    assert trace.chunk_ids == ("a",)


def test_parts_that_are_no_constructors_are_refused():
    with pytest.raises(TypeError):
        assembly.t2rag(
            parts([], open_index=lambda: "x"),
            decomposer=PromptedDecomposer,
            resolver=FillingResolver,
            synthesizer=PromptedSynthesizer,
            retriever=lambda: None,
        )


def test_dense_needs_an_index_of_chunks(tmp_path):
    from triax.extraction.verbalize import propositions
    from triax.indexing.updates import build_index

    encoder = HashingEncoder(64)
    index = build_index(CHUNKS, propositions(FACTS), encoder, tmp_path / "index", extractor="toy")
    given = assembly.Parts(
        ScriptedCompleter(["Hitchcock"]), encoder, CHUNKS, lambda: index, lambda: FACTS
    )
    trace = ask(assembly.dense(given, reader=PromptedReader, num_chunks=1))
    assert (trace.pipeline, trace.chunk_ids, trace.answer) == ("dense", ("a",), "Hitchcock")


def test_graph_gives_the_retriever_the_index(tmp_path):
    from triax.extraction.verbalize import propositions
    from triax.indexing.updates import build_index
    from triax.retrieval.graph import open_graph_retriever

    encoder = HashingEncoder(64)
    index = build_index(CHUNKS, propositions(FACTS), encoder, tmp_path / "index", extractor="toy")
    given = assembly.Parts(
        ScriptedCompleter(["Hitchcock"]), encoder, CHUNKS, lambda: index, lambda: FACTS
    )
    pipeline = assembly.graph(
        given, retriever=open_graph_retriever, reader=PromptedReader, num_chunks=1
    )
    trace = ask(pipeline)
    assert (trace.pipeline, trace.chunk_ids, trace.answer) == ("hipporag2", ("a",), "Hitchcock")


def graph_parts(tmp_path, answers):
    from triax.extraction.verbalize import propositions
    from triax.indexing.updates import build_index

    encoder = HashingEncoder(64)
    index = build_index(CHUNKS, propositions(FACTS), encoder, tmp_path / "index", extractor="toy")
    return assembly.Parts(ScriptedCompleter(answers), encoder, CHUNKS, lambda: index, lambda: FACTS)


def test_a_filter_that_asks_gets_the_completer_and_is_paid_for(tmp_path):
    """The index links "directed by" of both films; the filter keeps that of Stalker alone."""
    from triax.retrieval.asked_filter import LlmTripletFilter
    from triax.retrieval.graph import open_graph_retriever

    given = graph_parts(tmp_path, ['{"triplets": [["Stalker", "directed by", "Tarkovsky"]]}', "T"])
    retriever = partial(open_graph_retriever, triplet_filter=partial(LlmTripletFilter))
    pipeline = assembly.graph(given, retriever=retriever, reader=PromptedReader, num_chunks=1)
    trace = ask(pipeline)
    assert (trace.pipeline, trace.chunk_ids, trace.answer) == ("hipporag2", ("b",), "T")
    assert [one.stage for one in given.completer.requests][0] == "filter"
    assert [one.question_id for one in given.completer.requests] == ["q", "q"]
    assert trace.usage.calls == 2


def test_a_filter_that_is_whole_stays_as_it_is(tmp_path):
    from triax.retrieval.graph import open_graph_retriever

    class KeepsNone:
        def keep(self, groups, candidates):
            return [() for _ in groups]

    given = graph_parts(tmp_path, ["Hitchcock"])
    retriever = partial(open_graph_retriever, triplet_filter=KeepsNone())
    trace = ask(assembly.graph(given, retriever=retriever, reader=PromptedReader, num_chunks=1))
    assert (trace.chunk_ids, trace.usage.calls) == (("a",), 1)


def test_t2rag_has_no_bill_for_a_filter_that_asks():
    from triax.retrieval.asked_filter import LlmTripletFilter
    from triax.retrieval.graph import open_graph_retriever

    with pytest.raises(ValueError, match="triplet_filter=trained"):
        assembly.t2rag(
            parts([], open_index=lambda: "x"),
            decomposer=PromptedDecomposer,
            resolver=FillingResolver,
            synthesizer=PromptedSynthesizer,
            retriever=partial(open_graph_retriever, triplet_filter=partial(LlmTripletFilter)),
        )


def test_a_router_that_searches_gets_the_index(tmp_path):
    from triax.extraction.verbalize import propositions
    from triax.indexing.updates import build_index
    from triax.retrieval.dense import DenseRetriever
    from triax.routing.gated import RetrievalGate

    encoder = HashingEncoder(64)
    index = build_index(CHUNKS, propositions(FACTS), encoder, tmp_path / "index", extractor="toy")
    given = assembly.Parts(
        ScriptedCompleter(["Hitchcock"] * 2), encoder, CHUNKS, lambda: index, lambda: FACTS
    )
    sides = {
        side: partial(assembly.closed_book, reader=PromptedReader) for side in ("vanilla", "graph")
    }
    for threshold, route in ((-1.0, "vanilla"), (2.0, "graph")):
        router = partial(
            RetrievalGate, retriever=partial(DenseRetriever), signal="top", threshold=threshold
        )
        trace = ask(assembly.hybrid(given, router=router, **sides))
        assert (trace.answer, trace.routing.route) == ("Hitchcock", route)
