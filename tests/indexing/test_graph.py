import itertools

import numpy as np
import pytest

from triax.indexing.graph import build_graph, mentions, phrases_of
from triax.indexing.synonyms import SynonymRule, find_synonyms
from triax.indexing.tables import TripletTables
from triax.records.documents import Chunk
from triax.records.triplets import Proposition, Triplet


def tables_of(*facts, chunks=()):
    """Tables of (fields, chunk ids); further chunks have no proposition."""
    ids = sorted({name for _, names in facts for name in names} | set(chunks))
    return TripletTables.of(
        [Chunk(name, name, f"About {name}.") for name in ids],
        [Proposition("|".join(f), Triplet(*f), " ".join(f), tuple(names)) for f, names in facts],
    )


FACTS = [
    (("Ada", "met", "Babbage"), ("c1", "c2")),
    (("BABBAGE", "met", "ada"), ("c1",)),
    (("Ada", "is", "Ada"), ("c2",)),
    (("Ada", "lived in", "London"), ("c2",)),
]


def edges_of(graph):
    names = [*graph.phrases, *(f"#{row}" for row in range(graph.num_chunks))]
    rows = zip(graph.sources.tolist(), graph.targets.tolist(), graph.weights.tolist())
    return {(names[a], names[b]): weight for a, b, weight in rows}


def both_ways(pairs):
    return pairs | {(b, a): weight for (a, b), weight in pairs.items()}


CHUNK_EDGES = {
    ("#0", "ada"): 1,
    ("#0", "babbage"): 1,
    ("#1", "ada"): 1,
    ("#1", "babbage"): 1,
    ("#1", "london"): 1,
}


def test_weights_of_hipporag_by_hand():
    """Ada and Babbage meet in three pairs of triplet and chunk; Ada is no neighbour of herself."""
    graph = build_graph(tables_of(*FACTS, chunks=["c3"]))
    assert graph.phrases == ("ada", "babbage", "london") and graph.num_chunks == 3
    expected = both_ways({("ada", "babbage"): 6, ("ada", "london"): 2} | CHUNK_EDGES)
    assert edges_of(graph) == expected
    assert graph.chunk_counts.tolist() == [2, 2, 1]
    order = list(zip(graph.targets.tolist(), graph.sources.tolist()))
    assert order == sorted(order)


def test_simple_weights_and_no_chunks_by_hand():
    graph = build_graph(tables_of(*FACTS), is_multigraph=False)
    triplets = {("ada", "babbage"): 3, ("ada", "london"): 1}
    assert edges_of(graph) == both_ways(triplets | CHUNK_EDGES)
    alone = build_graph(tables_of(*FACTS), is_multigraph=False, has_chunks=False)
    assert edges_of(alone) == both_ways(triplets)
    assert alone.chunk_counts.tolist() == [2, 2, 1]


def test_synonyms_add_to_triplets():
    """There they replace them: a known fault of the original."""
    tables = tables_of(*FACTS)
    vectors = np.array([[1, 0], [0.8, 0.6], [0, 1]], np.float32)
    synonyms = find_synonyms(phrases_of(tables), vectors, SynonymRule(0.8))
    plain = edges_of(build_graph(tables))
    found = edges_of(build_graph(tables, synonyms))
    assert found == pytest.approx(plain | both_ways({("ada", "babbage"): 6 + 1.6}))
    simple = edges_of(build_graph(tables, synonyms, is_multigraph=False))
    assert simple["babbage", "ada"] == pytest.approx(3.8)
    # Named from one side only, 0.8 once.
    one = find_synonyms(phrases_of(tables), vectors, SynonymRule(0.5, 1))
    assert list(zip(one.sources, one.targets)) == [(0, 1), (1, 0), (2, 1)]
    found = edges_of(build_graph(tables, one))
    assert found["london", "babbage"] == found["babbage", "london"] == pytest.approx(0.6)
    with pytest.raises(ValueError, match="synonyms are of 3 phrases.*other 5"):
        build_graph(tables_of(*FACTS, (("x", "y", "z"), ("c1",))), synonyms)


def test_r07_names_of_all_scripts_stay_apart():
    fields = [("Лев Толстой", "x", "北京"), ("C++", "x", "C#"), ("São Paulo", "x", "ＣAFÉ")]
    tables = tables_of(*((one, ("c",)) for one in fields), (("\u200b", "x", "C"), ("c",)))
    graph = build_graph(tables)
    assert graph.phrases == ("c", "c#", "c++", "café", "são paulo", "лев толстой", "北京")
    assert graph.phrases == phrases_of(tables)
    # What has no letter is no phrase; its triplet still joins the chunk to the other end.
    row = tables.propositions["subject"].to_pylist().index("\u200b")
    assert graph.subjects[row] == -1 and graph.phrases[graph.objects[row]] == "c"
    assert edges_of(graph)["#0", "c"] == 1


def same(one, other):
    assert one.phrases == other.phrases and one.num_chunks == other.num_chunks
    for name in ("sources", "targets", "weights", "chunk_counts", "subjects", "objects"):
        assert (getattr(one, name) == getattr(other, name)).all(), name


def test_r18_the_order_of_documents_changes_nothing():
    graphs = [build_graph(tables_of(*order)) for order in itertools.permutations(FACTS)]
    for graph in graphs:
        same(graph, graphs[0])


def test_r09_no_triplet_and_no_chunk():
    empty = build_graph(tables_of(chunks=["c1"]))
    assert empty.num_nodes == 1 and len(empty.sources) == 0
    assert build_graph(tables_of()).num_nodes == 0
    one = build_graph(tables_of((("a", "is", "a"), ("c1",))))
    assert edges_of(one) == both_ways({("#0", "a"): 1})


def test_mentions_are_counted_once():
    graph = build_graph(tables_of(*FACTS))
    chunks, phrases = mentions(tables_of(*FACTS).sources, graph.subjects, graph.objects)
    assert list(zip(chunks, phrases)) == [(0, 0), (0, 1), (1, 0), (1, 1), (1, 2)]
