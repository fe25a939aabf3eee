import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrieval.six_entities import (
    ADA,
    BABBAGE,
    GRAPH,
    TABLES,
    chunk_ids,
    facts,
    titles,
)
from triax.extraction.verbalize import propositions
from triax.indexing.entity_graph import build_entity_graph, entity_texts
from triax.indexing.tables import TripletTables
from triax.models.token_counter import WordCounter
from triax.records.documents import Chunk
from triax.records.evidence import Evidence, Note
from triax.records.triplets import Extraction, Triplet
from triax.records.usage import Usage
from triax.retrieval.graph_context import ContextBudget, GraphContext, Ranking

ENTITIES = Ranking(np.array([BABBAGE, ADA]), np.array([0.5, 0.25]))
RELATIONS = Ranking(np.array([3, 0]))
ROWS = Ranking(np.array([1, 0, 2], np.int32))


def shown(num_chunks=9, entities=ENTITIES, relations=RELATIONS, chunks=ROWS, **budget):
    texts = entity_texts(GRAPH, TABLES)
    context = GraphContext(GRAPH, TABLES, texts, WordCounter(1.0), ContextBudget(**budget))
    return context.evidence(entities, relations, chunks, num_chunks, Usage(calls=2))


def test_each_kind_in_its_order_with_its_scores():
    found = shown()
    assert chunk_ids(found) == ["c2", "c1", "c3"]
    assert [one.score for one in found.chunks] == pytest.approx([1, 1 / 2, 1 / 3])
    assert facts(found) == ["Babbage knew Cora", "Ada met Babbage"]
    assert [hit.score for hit in found.hits] == pytest.approx([1, 1 / 2])
    assert [hit.chunk_ids for hit in found.hits] == [("c3",), ("c1", "c2")]
    # What is stated in two chunks goes before what is stated in one.
    assert found.notes[0].note == Note(
        "entity:babbage",
        "Ada met Babbage\nBabbage knew Cora",
        "Babbage",
        ("c1", "c2", "c3"),
    )
    assert [one.score for one in found.notes] == [0.5, 0.25]
    assert found.usage == Usage(calls=2)


def test_a_hit_names_only_chunks_that_are_shown():
    assert [hit.chunk_ids for hit in shown(num_chunks=1).hits] == [(), ("c2",)]
    assert shown(num_chunks=0).chunks == () and shown(num_chunks=-1).chunks == ()


def test_r08_each_list_ends_where_its_budget_is_full():
    """Chunks and facts have three words. Babbage and its two facts are seven, Ada's are 13."""
    limits = {"max_chunk_tokens": 8, "max_relation_tokens": 5, "max_entity_tokens": 19}
    found = shown(**limits)
    assert (len(found.chunks), len(found.hits), titles(found)) == (2, 1, ["Babbage"])
    assert titles(shown(max_entity_tokens=20)) == ["Babbage", "Ada"]
    nothing = shown(**dict.fromkeys(limits, 0))
    assert (nothing.chunks, nothing.hits, nothing.notes) == ((), (), ())


tokens = st.integers(0, 40)


@given(tokens, tokens, tokens, st.integers(0, 14), st.integers(-1, 6))
def test_r08_no_list_has_more_tokens_than_its_budget(entities, relations, chunks, one, num_chunks):
    """What a note shows is its title too; what is left out is no source of a hit."""
    found = shown(
        num_chunks,
        Ranking(np.arange(6)),
        Ranking(np.arange(7)),
        Ranking(np.arange(6)),
        max_entity_tokens=entities,
        max_relation_tokens=relations,
        max_chunk_tokens=chunks,
        max_description_tokens=one,
    )
    count = WordCounter(1.0).count
    notes = count([f"{note.note.title}\n{note.note.text}" for note in found.notes])
    assert sum(notes) <= entities and all(4 <= size <= one for size in notes)
    assert sum(count(facts(found))) <= relations
    assert sum(count([chunk.chunk.passage for chunk in found.chunks])) <= chunks
    assert len(found.chunks) <= max(0, num_chunks)
    assert {name for hit in found.hits for name in hit.chunk_ids} <= set(chunk_ids(found))


def test_of_a_relation_what_is_stated_most_often_stands_first():
    """Whatever the order of rows: ids of propositions are hashes."""
    for often in ("met", "taught", "saw"):
        said = [("a", "met"), ("a", "taught"), ("a", "saw"), ("b", often)]
        extractions = [Extraction(c, (Triplet("Ada", verb, "Babbage"),)) for c, verb in said]
        chunks = [Chunk(name, name, "text") for name in "ab"]
        tables = TripletTables.of(chunks, propositions(extractions))
        graph = build_entity_graph(tables)
        context = GraphContext(graph, tables, entity_texts(graph, tables), WordCounter(1.0))
        none = Ranking(np.zeros(0, np.int64))
        found = context.evidence(none, Ranking(np.array([0])), none, 9)
        assert facts(found)[0] == f"Ada {often} Babbage" and len(found.hits) == 3


def test_a_long_description_is_cut_and_then_fits():
    found = shown(max_description_tokens=4, max_entity_tokens=8)
    assert [one.note.text for one in found.notes] == ["Ada met Babbage", "Ada met Babbage"]
    # Half a proposition is left out; an entity of which nothing else is left is too.
    whole = [one.note.text for one in shown(max_description_tokens=6).notes]
    assert whole == ["Ada met Babbage", "Ada met Babbage"]
    assert shown(max_description_tokens=3).notes == shown(max_description_tokens=0).notes == ()


def test_descriptions_may_be_left_out():
    found = shown(shows_entities=False)
    assert found.notes == () and found.hits == shown().hits


def test_r09_nothing_was_ranked():
    none = Ranking(np.zeros(0, np.int64))
    assert shown(9, none, none, none) == Evidence(usage=Usage(calls=2))
