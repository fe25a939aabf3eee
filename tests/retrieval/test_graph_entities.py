import numpy as np
import pytest

from triax.indexing.graph import build_graph
from triax.indexing.hashing import HashingEncoder
from triax.indexing.tables import TripletTables
from triax.indexing.updates import build_index
from triax.records.documents import Chunk
from triax.records.evidence import Evidence
from triax.records.triplets import Proposition, Triplet
from triax.records.verbs import Retriever
from triax.retrieval.graph_entities import (
    EntityGraphRetriever,
    capitalised_names,
    open_entity_retriever,
)
from triax.retrieval.row_scores import WordScores
from triax.retrieval.terms import Bm25

FACTS = [("ada", "met", "babbage", "c0"), ("ada", "lived in", "london", "c1")]
FACTS += [("london", "lies on", "thames", "c2")]


@pytest.fixture
def tables():
    return TripletTables.of(
        [Chunk(f"c{i}", f"c{i}", text) for i, text in enumerate(("one", "two", "three"))],
        [Proposition(f"{s}{o}", Triplet(s, p, o), s, (c,)) for s, p, o, c in FACTS],
    )


def make(tables, entities=str.split):
    graph = build_graph(tables, has_chunks=False)
    phrases = WordScores(Bm25(graph.phrases), len(graph.phrases))
    chunks = WordScores(Bm25(["one", "two", "three"]), 3)
    return EntityGraphRetriever(tables, graph, phrases, chunks, entities, num_iterations=30)


def test_a_question_by_hand(tables):
    """Seeds: Babbage 1 / 1 chunk and London 1 / 2; the chain babbage - ada - london - thames."""
    chain = np.zeros((4, 4))  # ada, babbage, london, thames
    for a, b in [(0, 1), (0, 2), (2, 3)]:
        chain[a, b] = chain[b, a] = 2
    reset = np.array([0, 1, 0.5, 0]) / 1.5
    ranks = np.linalg.solve(np.eye(4) - 0.5 * chain / chain.sum(axis=0), 0.5 * reset)
    expected = [ranks[0] + ranks[1], ranks[0] + ranks[2], ranks[2] + ranks[3]]
    retriever = make(tables)
    assert isinstance(retriever, Retriever)
    np.testing.assert_allclose(retriever.scores([["babbage london"]])[0], expected, atol=1e-6)
    found, none = retriever.search([["babbage london"], []], 2)
    assert [one.chunk.id for one in found.chunks] == ["c0", "c1"] and none == Evidence()


def test_r09_a_question_without_an_entity_is_ranked_by_passages(tables):
    retriever = make(tables, lambda text: [])
    (found,) = retriever.search([["three"]], 9)
    assert [one.chunk.id for one in found.chunks] == ["c2", "c0", "c1"]
    assert retriever.scores([]).shape == (0, 3)
    # An entity that no phrase shares a word with is none.
    assert make(tables).search([["three"]], 1)[0].chunks[0].chunk.id == "c2"


def test_names_of_a_question():
    found = capitalised_names("When was the University of Oxford's rival in Cambridge founded?")
    assert found == ("University of Oxford", "Cambridge")
    assert capitalised_names("Which film came out first, Up or The Third Man (1949)?") == (
        "Up",
        "Third Man",
        "1949",
    )
    assert capitalised_names("Де народився Тарас Шевченко?") == ("Де", "Тарас Шевченко")
    assert capitalised_names("北京在哪里?") == ("北京在哪里?",) and capitalised_names(" ") == ()


def test_an_index_is_opened(tmp_path):
    encoder = HashingEncoder(256)
    chunks = [Chunk("a", "a", "text"), Chunk("b", "b", "other")]
    facts = [
        Proposition("1", Triplet("Ada Lovelace", "met", "Babbage"), "x", ("a",)),
        Proposition("2", Triplet("Marie Curie", "born in", "Warsaw"), "y", ("b",)),
    ]
    index = build_index(chunks, facts, encoder, tmp_path / "i")
    for scorer, threshold in (("encoder", 0.8), ("bm25", None)):
        retriever = open_entity_retriever(
            index, encoder, scorer=scorer, synonym_threshold=threshold
        )
        (found,) = retriever.search([["Who is Marie Curie?"]], 1)
        assert [one.chunk.id for one in found.chunks] == ["b"]
    with pytest.raises(ValueError, match="give a synonym_threshold"):
        open_entity_retriever(index, encoder, synonym_threshold=None)
