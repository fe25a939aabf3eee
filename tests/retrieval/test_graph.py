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
from triax.retrieval.graph import GraphRetriever, Walking, open_graph_retriever
from triax.retrieval.triplet_filter import Kept, TripletFilter

# Three passages in a chain (0 - ada - 1 - london - 2) and one by itself.
FACTS = [("ada", "met", "babbage", "c0"), ("ada", "lived in", "london", "c1")]
FACTS += [("london", "lies on", "thames", "c2"), ("kyiv", "lies on", "dnipro", "c3")]
ADA, BABBAGE, DNIPRO, KYIV, LONDON, THAMES, C0, C1, C2, C3 = range(10)


class Given:
    """Scores by hand, the same for every group that asks."""

    def __init__(self, *scores):
        self.row = np.array(scores, np.float32)

    def scores(self, groups):
        return np.stack([self.row if group else 0 * self.row for group in groups])


def make_tables():
    chunks = [Chunk(name, name, f"Text of {name}.") for *_, name in FACTS]
    return TripletTables.of(
        chunks,
        [
            Proposition(f"p{i}", Triplet(s, p, o), f"{s} {p} {o}", (c,))
            for i, (s, p, o, c) in enumerate(FACTS)
        ],
    )


def make(triplets, passages, walking=None, keep=None, tile=256):
    tables = make_tables()
    scores = Given(*triplets), Given(*passages)
    return GraphRetriever(tables, build_graph(tables), *scores, walking or Walking(), keep, tile)


def solved(reset, damping=0.5):
    """PageRank of the graph of FACTS from the definition, edges written down by hand."""
    weights = np.zeros((10, 10))
    for a, b in [(ADA, BABBAGE), (ADA, LONDON), (LONDON, THAMES), (KYIV, DNIPRO)]:
        weights[a, b] = weights[b, a] = 2
    for chunk, phrases in [
        (C0, (ADA, BABBAGE)),
        (C1, (ADA, LONDON)),
        (C2, (LONDON, THAMES)),
        (C3, (KYIV, DNIPRO)),
    ]:
        for phrase in phrases:
            weights[chunk, phrase] = weights[phrase, chunk] = 1
    reset = np.array(reset) / sum(reset)
    steps = weights / weights.sum(axis=0)
    return np.linalg.solve(np.eye(10) - damping * steps, (1 - damping) * reset)


def ids(evidence):
    return [one.chunk.id for one in evidence.chunks]


def test_a_question_by_hand():
    """Triplets 0.9, 0.5, 0.1, 0.1 become 1, 0.5, 0, 0; so the first two are linked.

    Ada: mean(1, 0.5) / 2 chunks = 0.375; Babbage: 1 / 1; London: 0.5 / 2. Passages 0.2, 0.2, 0.6,
    0.2 become 0, 0, 1, 0, times 0.05.
    """
    retriever = make([0.9, 0.5, 0.1, 0.1], [0.2, 0.2, 0.6, 0.2])
    assert isinstance(retriever, Retriever)
    reset = [0.375, 1, 0, 0, 0.25, 0, 0, 0, 0.05, 0]
    expected = solved(reset)[C0:]
    np.testing.assert_allclose(retriever.scores([["q"]])[0], expected, atol=1e-5)
    found, none = retriever.search([["q"], []], 3)
    order = np.argsort(-expected)[:3]
    assert ids(found) == [f"c{row}" for row in order] == ["c0", "c1", "c2"]
    assert [c.score for c in found.chunks] == pytest.approx(expected[order], abs=1e-5)
    assert [(h.proposition.text, h.score, h.chunk_ids) for h in found.hits] == [
        ("ada met babbage", pytest.approx(1), ("c0",)),
        ("ada lived in london", pytest.approx(0.5), ("c1",)),
    ]
    assert none == Evidence()


def test_every_number_of_the_method_is_a_setting():
    triplets, passages = [0.9, 0.5, 0.1, 0.1], [0.2, 0.2, 0.6, 0.2]

    def scores(**settings):
        return make(triplets, passages, Walking(**settings)).scores([["q"]])[0]

    for settings, reset, damping in [
        ({"damping": 0.8}, [0.375, 1, 0, 0, 0.25, 0, 0, 0, 0.05, 0], 0.8),
        ({"passage_weight": 0.0}, [0.375, 1, 0, 0, 0.25, 0, 0, 0, 0, 0], 0.5),
        ({"divides_by_chunks": False}, [0.75, 1, 0, 0, 0.5, 0, 0, 0, 0.05, 0], 0.5),
        ({"num_seeds": 1}, [0, 1, 0, 0, 0, 0, 0, 0, 0.05, 0], 0.5),
        ({"linking_top_k": 1}, [0.5, 1, 0, 0, 0, 0, 0, 0, 0.05, 0], 0.5),
    ]:
        np.testing.assert_allclose(scores(**settings), solved(reset, damping)[C0:], atol=2e-5)
    assert np.abs(scores(num_iterations=1) - scores()).max() > 1e-3


def test_a_question_without_a_link_is_ranked_by_passages():
    """No triplet fits, or the filter keeps none."""
    unfit = make([0, 0, 0, 0], [0.2, 0.4, 0.6, 0.2])
    (found,) = unfit.search([["q"]], 9)
    assert ids(found) == ["c2", "c1", "c0", "c3"] and found.hits == ()
    assert [c.score for c in found.chunks] == pytest.approx([1, 0.5, 0, 0])


class Keep:
    """Keeps the places that it was told, and remembers what it was asked."""

    def __init__(self, *places):
        self.places = places
        self.asked = []

    def keep(self, groups, candidates):
        self.asked += [[one.text for one in candidate] for candidate in candidates]
        return [Kept(self.places) for _ in groups]


def test_a_filter_drops_links():
    keep = Keep(1, 7, 1, -1)  # repeated and invented places are passed over
    assert isinstance(keep, TripletFilter)
    triplets, passages = [0.9, 0.5, 0.1, 0.1], [0.2, 0.2, 0.6, 0.2]
    (found,) = make(triplets, passages, keep=keep).search([["q"]], 1)
    assert keep.asked == [["ada met babbage", "ada lived in london"]]
    assert [hit.proposition.text for hit in found.hits] == ["ada lived in london"]
    # Ada and London, 0.5 / 2 each.
    expected = solved([0.25, 0, 0, 0, 0.25, 0, 0, 0, 0.05, 0])[C0:]
    scores = make(triplets, passages, keep=keep).scores([["q"]])[0]
    np.testing.assert_allclose(scores, expected, atol=1e-5)
    (found,) = make(triplets, passages, keep=Keep()).search([["q"]], 2)
    assert ids(found) == ["c2", "c0"] and found.hits == ()


def test_r14_a_passage_of_another_component_is_ranked():
    retriever = make([0.9, 0.5, 0.1, 0.1], [0.2, 0.1, 0.2, 0.6])
    (found,) = retriever.search([["q"]], 9)
    assert sorted(ids(found)) == ["c0", "c1", "c2", "c3"]
    assert retriever.scores([["q"]])[0][3] > 0.01


def test_tiles_and_empty_groups_change_nothing():
    groups = [["q"], [], ["q"], ["r"], []]
    one = make([0.9, 0.5, 0.1, 0.1], [0.2, 0.2, 0.6, 0.2])
    many = make([0.9, 0.5, 0.1, 0.1], [0.2, 0.2, 0.6, 0.2], tile=2)
    np.testing.assert_allclose(one.scores(groups), many.scores(groups), atol=1e-7)
    assert (one.scores(groups)[[1, 4]] == 0).all()
    assert [ids(e) for e in many.search(groups, 2)] == [["c0", "c1"], [], ["c0", "c1"]] + [
        ["c0", "c1"],
        [],
    ]
    assert one.search([], 2) == [] and one.scores([]).shape == (0, 4)


def test_r09_tiny_indexes_give_a_ranked_list(build):
    encoder = HashingEncoder(256)
    nothing = open_graph_retriever(build(), encoder)
    assert nothing.search([["one"]], 5) == [Evidence()]
    one = open_graph_retriever(build("one"), encoder)
    for query in ("one two", "other"):  # one triplet fits, or none does
        assert ids(one.search([[query]], 5)[0]) == ["c0"]
    same = open_graph_retriever(build("same", "same", "same"), encoder)
    assert ids(same.search([["same"]], 2)[0]) == ["c0", "c1"]
    assert ids(same.search([["same"]], 9)[0]) == ["c0", "c1", "c2"]
    assert same.search([["same"]], 0)[0].chunks == ()


def test_r09_passages_without_triplets(tmp_path):
    encoder = HashingEncoder(64)
    index = build_index([Chunk("a", "a", "red"), Chunk("b", "b", "blue")], [], encoder, tmp_path)
    (found,) = open_graph_retriever(index, encoder).search([["blue"]], 5)
    assert ids(found) == ["b", "a"]


@pytest.mark.parametrize("scorer", ["encoder", "bm25", "tfidf"])
def test_r07_an_index_is_opened_with_any_scorer(index, encoder, scorer):
    threshold = 0.8 if scorer == "encoder" else None
    given = encoder if scorer == "encoder" else None
    retriever = open_graph_retriever(index, given, scorer=scorer, synonym_threshold=threshold)
    ada, kyiv = retriever.search([["What did Ada Lovelace write?"], ["Що стоїть на Дніпрі?"]], 1)
    assert ids(ada) == ["ada"] and ids(kyiv) == ["kyiv"]
    assert kyiv.hits[0].proposition.triplet.subject == "Київ"


def test_what_is_missing_is_named(build, encoder):
    index = build("one", embeds_chunks=False)
    with pytest.raises(ValueError, match="chunk vectors.*embeds_chunks=True"):
        open_graph_retriever(index, encoder)
    with pytest.raises(ValueError, match="no encoder was given"):
        open_graph_retriever(index, None, synonym_threshold=None)
    with pytest.raises(TypeError, match="dampning"):
        open_graph_retriever(build("two", "words"), encoder, dampning=0.5)
