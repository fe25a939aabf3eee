from collections import Counter

import numpy as np
import pytest
from scipy.sparse import csr_array

from retrieval.six_entities import (
    CHUNKS,
    ELM,
    FENN,
    FOUND,
    GRAPH,
    TABLES,
    Given,
    Told,
    chunk_ids,
    facts,
    titles,
)
from triax.extraction.verbalize import propositions
from triax.indexing.entity_graph import build_entity_graph, entity_texts
from triax.indexing.hashing import HashingEncoder
from triax.indexing.tables import TripletTables
from triax.indexing.updates import build_index
from triax.models.token_counter import WordCounter
from triax.records.documents import Chunk
from triax.records.evidence import Evidence
from triax.records.triplets import Extraction, Triplet
from triax.records.usage import Usage
from triax.records.verbs import Retriever
from triax.retrieval.graph_context import GraphContext
from triax.retrieval.incidence import IncidenceRetriever, Spread, keep_best, open_incidence
from triax.retrieval.keywords import Keywords, RuleKeywords

WIDE = dict(max_entities=99, max_relations=99, max_chunks=99)


class ByText:
    """The scores of each text by hand; others are near to nothing."""

    def __init__(self, size, **scores):
        self.size, self.known = size, scores

    def scores(self, groups):
        none = [0.0] * self.size
        rows = [self.known.get(text, none) for (text,) in groups]
        return np.array(rows, np.float32).reshape(len(groups), self.size)


def make(scores, keywords=None, graph=GRAPH, tables=TABLES, **spread):
    context = GraphContext(graph, tables, entity_texts(graph, tables), WordCounter(1.0))
    return IncidenceRetriever(graph, scores, keywords or Told(), context, Spread(**spread), tile=2)


def test_what_a_question_is_linked_to_by_hand():
    """Names take their one entity, themes and the question several; each row has the sum 1.

    "Fenn" is linked to Fenn (1), though Elm is above the threshold too; "near" is below it, and
    Elm's 0.6 is too. "theme" gives Ada 0.8 and Elm 0.6 of 1.4 each, "q" gives Ada 1.
    """
    scores = ByText(
        6,
        Fenn=[0, 0, 0, 0, 0.75, 0.9],
        near=[0, 0.69, 0, 0, 0, 0],
        theme=[0.8, 0.49, 0, 0, 0.6, 0],
        q=[0.5, 0, 0, 0, 0, 0],
    )
    retriever = make(scores)
    said = [Keywords(("theme", "none"), ("Fenn", "near"))]
    [found] = retriever.resets([["q"]], said)
    np.testing.assert_allclose(found, [1, 0, 0, 0, 0.6 / 1.4, 1], atol=1e-6)
    [one] = make(scores, generic_top_k=1).resets([["none"]], said)
    np.testing.assert_allclose(one, [1, 0, 0, 0, 0, 1], atol=1e-6)
    assert not retriever.resets([["none"]], [Keywords((), ())]).any()


def test_the_best_are_kept_in_order_and_ties_go_by_row():
    scores = np.array([[0.2, 0.5, 0, 0.5, 0.1], [0, 0, 0, 0, 0], [0.1, 0.1, 0.1, 0.1, 0.1]])
    for given in (scores.astype(np.float32), csr_array(scores.astype(np.float32))):
        kept = keep_best(given, 3, 0.15)
        assert kept.indices[kept.indptr[0] : kept.indptr[1]].tolist() == [1, 3, 0]
        assert np.diff(kept.indptr).tolist() == [3, 0, 0]
        assert kept.toarray()[0].tolist() == pytest.approx([0.2, 0.5, 0, 0.5, 0])
        third = keep_best(given, 2)
        assert third.indices[third.indptr[2] :].tolist() == [0, 1]
    assert keep_best(np.zeros((0, 4), np.float32), 3).shape == (0, 4)


def test_a_question_by_hand():
    """A damping of 0 leaves the scores where they are: Fenn 0.5, Elm 0.5.

    Elm-Fenn has 1, Dorn-Elm 0.5; c5 states both and is the only chunk.
    """
    scores = ByText(6, Fenn=[0, 0, 0, 0, 0, 0.9], Elm=[0, 0, 0, 0, 0.9, 0])
    retriever = make(scores, Told([], ["Fenn", "Elm"], Usage(calls=1)), damping=0.0)
    assert isinstance(retriever, Retriever)
    found, none, again = retriever.search([["q"], [], ["p", "q"]], 9)
    assert titles(found) == [GRAPH.names[ELM], GRAPH.names[FENN]]
    assert facts(found) == ["Elm joins Fenn", "Dorn joins Elm"]
    assert [hit.score for hit in found.hits] == pytest.approx([1, 0.5])
    assert chunk_ids(found) == ["c5"] and found.chunks[0].score == pytest.approx(1.5)
    assert found.usage == Usage(calls=1) and none == Evidence() and again == found


def test_r09_a_question_without_an_entity_finds_nothing():
    told = Told(usage=Usage(calls=1))
    assert make(Given(*[0.4] * 6), told).search([["q"]], 9) == [Evidence(usage=Usage(calls=1))]
    assert make(Given(*[0.4] * 6), told).search([], 9) == []
    assert told.asked == ["q"]


def test_limits_bind():
    """Without a walk, Ada has all: three relations have 1 each and go by row; c2 states two."""
    scores = ByText(6, Ada=[0.9, 0, 0, 0, 0, 0], Elm=[0, 0, 0, 0, 0.9, 0])
    limits = {"damping": 0.0, "max_relations": 2, "max_chunks": 1}
    [found] = make(scores, Told([], ["Ada"]), **limits).search([["q"]], 9)
    assert facts(found) == ["Ada met Babbage", "Ada taught Cora"]
    assert [(one.chunk.id, one.score) for one in found.chunks] == [("c2", pytest.approx(2))]
    [two] = make(scores, Told([], ["Ada"]), damping=0.0).search([["q"]], 2)
    assert chunk_ids(two) == ["c2", "c1"]
    both = make(scores, Told([], ["Elm", "Ada"]), damping=0.0, max_entities=1)
    assert titles(both.search([["q"]], 9)[0]) == ["Ada"]
    none = make(scores, Told([], ["Elm", "Ada"]), damping=0.0, min_score=0.6)
    assert none.search([["q"]], 9) == [Evidence()]


def test_the_defaults_are_those_of_fast_graphrag():
    assert Spread() == Spread(0.7, 20, 0.5, 0.85, 0.005, 128, 64, 8)


def drawn(seed):
    """What 30 chunks say about 25 entities; some pairs are joined by several propositions."""
    random = np.random.default_rng(seed)
    names = [f"e{number:02}" for number in range(25)]
    said = []
    for chunk in range(30):
        for _ in range(3):
            subject, other = random.choice(12 + 13 * (chunk % 2), 2, replace=False)
            verb = ("met", "saw")[random.integers(2)]
            said.append((f"c{chunk:02}", names[subject], verb, names[other]))
    return said


@pytest.mark.parametrize("seed", [0, 1])
def test_r12_equals_igraph_and_dense_products(seed):
    """Every proposition is an edge of its own in igraph; products are over dense matrices."""
    igraph = pytest.importorskip("igraph")
    said = drawn(seed)
    chunks = [Chunk(f"c{number:02}", "d", "text", "") for number in range(30)]
    tables = TripletTables.of(
        chunks, propositions([Extraction(c, (Triplet(*rest),)) for c, *rest in said])
    )
    graph = build_entity_graph(tables)
    names = list(graph.names)
    reset = np.zeros(len(names), np.float32)
    reset[[1, 4]] = 1.0
    scores = ByText(len(names), a=np.eye(len(names))[1], b=np.eye(len(names))[4])
    retriever = make(scores, Told([], ["a", "b"]), graph, tables, min_score=0.0, **WIDE)
    [found] = retriever.search([["q"]], 99)

    edges = [(names.index(s), names.index(o)) for s, _, o in {one[1:] for one in said}]
    ranks = np.array(
        igraph.Graph(n=len(names), edges=edges).personalized_pagerank(
            damping=0.85, directed=False, reset=reset.tolist(), implementation="prpack"
        )
    )
    notes = {one.note.title: one.score for one in found.notes}
    assert notes == pytest.approx({n: r for n, r in zip(names, ranks) if r > 1e-4}, abs=2e-5)

    def pair_of(subject, other):
        return tuple(sorted((names.index(subject), names.index(other))))

    pairs = sorted({tuple(sorted(one)) for one in edges})
    incidence = np.array([[entity in pair for pair in pairs] for entity in range(len(names))])
    # A chunk that says the same twice is one source of it.
    stated = Counter((pair_of(subject, other), c) for c, subject, _, other in set(said))
    sources = np.array([[stated[pair, chunk.id] for chunk in chunks] for pair in pairs])
    relations = ranks @ incidence
    wanted = relations @ sources
    triplets = [(hit.proposition.triplet, hit.score) for hit in found.hits]
    hits = {pair_of(one.subject, one.object): score for one, score in triplets}
    assert hits == pytest.approx(dict(zip(pairs, relations)), abs=5e-5)
    assert {one.chunk.id: one.score for one in found.chunks} == pytest.approx(
        {c.id: s for c, s in zip(chunks, wanted) if s > 0}, abs=5e-4
    )
    values = [one.score for one in found.chunks]
    assert values == sorted(values, reverse=True)


ENCODER = HashingEncoder(256)


def test_over_an_index(tmp_path):
    index = build_index(CHUNKS, FOUND, ENCODER, tmp_path / "index", extractor="t")
    found = open_incidence(
        index, ENCODER, RuleKeywords(), WordCounter(1.0), named_threshold=0.5, shows_entities=False
    )
    fenn, empty = found.search([["Who joins Fenn?"], []], 3)
    assert chunk_ids(fenn)[0] == "c5" and "Elm joins Fenn" in facts(fenn) and not fenn.notes
    assert empty == Evidence()
    with pytest.raises(ValueError, match="encoder"):
        open_incidence(index, HashingEncoder(8), RuleKeywords(), WordCounter(1.0))


def test_r13_an_index_without_a_triplet(tmp_path):
    empty = build_index(CHUNKS, (), ENCODER, tmp_path / "index", extractor="t")
    found = open_incidence(empty, ENCODER, RuleKeywords(), WordCounter(1.0))
    assert found.search([["Ada"], []], 3) == [Evidence(), Evidence()]
