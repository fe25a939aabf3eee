import networkx as nx
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from triax.extraction.verbalize import propositions
from triax.indexing.entity_graph import (
    build_entity_graph,
    entity_texts,
    open_text_vectors,
    relation_texts,
)
from triax.indexing.graph import phrases_of
from triax.indexing.hashing import HashingEncoder
from triax.indexing.tables import TripletTables
from triax.indexing.updates import build_index
from triax.records.documents import Chunk
from triax.records.triplets import Extraction, Triplet

SAID = {
    "a": [("Ada", "met", "Babbage"), ("ada", "lived in", "London")],
    "b": [("Babbage", "taught", "Ada"), ("Ada", "met", "Babbage")],
    "c": [("London", "is", "London"), ("Kyiv", "lies on", "Dnipro"), ("Ada", "is", "...")],
}
CHUNKS = [Chunk(name, name, f"text {name}") for name in SAID]


def tables_of(said):
    found = [Extraction(c, tuple(Triplet(*one) for one in said[c])) for c in said]
    return TripletTables.of([Chunk(c, c, f"text {c}") for c in said], propositions(found))


TABLES = tables_of(SAID)
GRAPH = build_entity_graph(TABLES)


def test_entities_are_the_phrases_of_the_graph():
    assert (
        GRAPH.entities
        == phrases_of(TABLES)
        == ("...", "ada", "babbage", "dnipro", "kyiv", "london")
    )
    # "Ada" is written three times, "ada" once.
    assert GRAPH.names == ("...", "Ada", "Babbage", "Dnipro", "Kyiv", "London")


def test_a_relation_is_a_pair_with_all_that_joins_it():
    pairs = [(GRAPH.names[h], GRAPH.names[t]) for h, t in zip(GRAPH.heads, GRAPH.tails)]
    assert pairs == [("...", "Ada"), ("Ada", "Babbage"), ("Ada", "London"), ("Dnipro", "Kyiv")]
    # "Ada met Babbage" in two chunks and "Babbage taught Ada" in one.
    assert GRAPH.weights.tolist() == [1, 3, 1, 1]
    assert GRAPH.statements.sum(axis=1).tolist() == [1, 2, 1, 1]
    assert GRAPH.relation_chunks.toarray().tolist() == [[0, 0, 1], [1, 2, 0], [1, 0, 0], [0, 0, 1]]


def test_what_joins_a_name_to_itself_is_a_mention():
    ada, london = GRAPH.entities.index("ada"), GRAPH.entities.index("london")
    assert GRAPH.entity_chunks.toarray()[ada].tolist() == [2, 2, 1]
    assert GRAPH.entity_chunks.toarray()[london].tolist() == [1, 0, 1]


def test_descriptions_say_the_most_often_stated_first():
    texts = dict(zip(GRAPH.names, entity_texts(GRAPH, TABLES)))
    assert texts["Babbage"] == "Babbage\nAda met Babbage\nBabbage taught Ada"
    assert texts["Kyiv"] == "Kyiv\nKyiv lies on Dnipro"
    relation = relation_texts(GRAPH, TABLES)[1]
    assert set(relation.split("\n")[0].split(", ")) == {"met", "taught"}
    assert relation.split("\n")[1:] == ["Ada", "Babbage", "Ada met Babbage", "Babbage taught Ada"]


names = st.sampled_from(["a", "b", "c", "A", "d e", "?!", ""]).filter(bool)
said = st.dictionaries(
    st.sampled_from("xyz"), st.lists(st.tuples(names, st.just("r"), names), max_size=6), min_size=1
)


@given(said)
def test_it_is_the_simple_graph_of_networkx(said):
    graph = build_entity_graph(tables_of(said))
    wanted = nx.Graph()
    for triplets in said.values():
        for subject, _, object in set(triplets):
            s, o = subject.casefold(), object.casefold()
            wanted.add_nodes_from((s, o))
            if s != o:
                weight = wanted.get_edge_data(s, o, {"weight": 0})["weight"]
                wanted.add_edge(s, o, weight=weight + 1)
    assert set(graph.entities) == set(wanted)
    found = {
        (graph.entities[h], graph.entities[t]): w
        for h, t, w in zip(graph.heads, graph.tails, graph.weights)
    }
    assert found == {tuple(sorted(e)): d["weight"] for *e, d in wanted.edges(data=True)}
    degrees = dict(wanted.degree())
    assert graph.degrees.tolist() == [degrees[one] for one in graph.entities]
    assert graph.incidence.sum(axis=1).tolist() == graph.degrees.tolist()


def test_r09_no_proposition_at_all():
    graph = build_entity_graph(TripletTables.of(CHUNKS, ()))
    assert graph.entities == () and len(graph.heads) == 0
    assert graph.incidence.shape == (0, 0) and graph.entity_chunks.shape == (0, 3)
    assert entity_texts(graph, TripletTables.of(CHUNKS, ())) == []


def test_texts_are_embedded_once(tmp_path):
    class Counts(HashingEncoder):
        def encode(self, texts, role="passage"):
            calls.append(len(texts))
            return super().encode(texts, role)

    calls = []
    encoder = Counts(16)
    found = propositions([Extraction("a", (Triplet(*SAID["a"][0]),))])
    index = build_index(CHUNKS, found, encoder, tmp_path / "index", extractor="t")
    calls.clear()
    texts = ["Ada", "Babbage", "Ada"]
    for _ in range(2):
        rows = open_text_vectors(index, encoder, "names", texts)
        np.testing.assert_allclose(rows, HashingEncoder(16).encode(texts), atol=1e-6)
    assert sum(calls) == 2
    other = open_text_vectors(index, encoder, "names", ["Ada", "Cora", "Ada"])
    assert np.abs(other[1] - rows[1]).max() > 0.1
