from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from retrieval.six_entities import (
    CHUNKS,
    FOUND,
    GRAPH,
    SAID,
    TABLES,
    Given,
    Told,
    chunk_ids,
    facts,
    titles,
)
from triax.indexing.entity_graph import entity_texts
from triax.indexing.hashing import HashingEncoder
from triax.indexing.updates import build_index
from triax.models.token_counter import WordCounter
from triax.records.evidence import Evidence
from triax.records.usage import Usage
from triax.records.verbs import Retriever
from triax.retrieval.graph_context import ContextBudget, GraphContext
from triax.retrieval.keywords import RuleKeywords
from triax.retrieval.lightrag import (
    MODES,
    LightRag,
    Reach,
    open_lightrag,
    relation_places,
    take_turns,
)

NAMED = (0.5, 0.9, 0.1, 0, 0, 0)  # Babbage, Ada; Cora is below the threshold
THEMED = (0.8, 0.1, 0, 0.1, 0.3, 0.9, 0)  # Dorn-Elm, Ada-Babbage, Cora-Dorn
NEAR = (0.5, 0, 0.1, 0, 0, 0.9)  # c6, c1
REACH = Reach()


def make(mode, keywords=None, named=NAMED, themed=THEMED, reach=REACH, **budget):
    context = GraphContext(
        GRAPH, TABLES, entity_texts(GRAPH, TABLES), WordCounter(1.0), ContextBudget(**budget)
    )
    scores = {"chunks": Given(*NEAR), "entities": Given(*named), "relations": Given(*themed)}
    scores = {name: scores[name] for name in MODES[mode]}
    return LightRag(GRAPH, scores, keywords or Told(), context, reach, tile=2), scores


def search(mode, *args, num_chunks=9, **settings):
    return make(mode, *args, **settings)[0].search([["q"]], num_chunks)[0]


def test_relations_go_by_degrees_weight_and_row():
    """Sums of degrees: 5, 6, 6, 5, 6, 5, 3; row 0 is stated twice, the others once."""
    assert np.argsort(relation_places(GRAPH)).tolist() == [1, 2, 4, 0, 3, 5, 6]
    heavy = replace(GRAPH, weights=np.array([2, 1, 1, 1, 1, 3, 9], np.float32))
    assert np.argsort(relation_places(heavy)).tolist() == [1, 2, 4, 5, 0, 3, 6]


def test_local_by_hand():
    """Babbage is nearest, then Ada; their relations are Ada-Cora, Ada-Dorn (6), the others (5).

    Of Babbage's chunks, c2 and c3 mention both neighbours, Ada and Cora, c1 Ada alone; c6 is left
    of Ada.
    """
    found = search("local")
    assert titles(found) == ["Babbage", "Ada"]
    assert facts(found) == [
        "Ada taught Cora",
        "Ada saw Dorn",
        "Ada met Babbage",
        "Babbage knew Cora",
    ]
    assert chunk_ids(found) == ["c2", "c3", "c1", "c6"]
    assert [one.score for one in found.chunks] == pytest.approx([1, 1 / 2, 1 / 3, 1 / 4])


def test_global_by_hand():
    """Cora-Dorn (6) goes before Ada-Babbage (5, twice) and Dorn-Elm (5), though it is less near."""
    found = search("global")
    assert facts(found) == ["Cora saw Dorn", "Ada met Babbage", "Dorn joins Elm"]
    assert titles(found) == ["Cora", "Dorn", "Ada", "Babbage", "Elm"]
    assert chunk_ids(found) == ["c4", "c1", "c2", "c5"]


def test_hybrid_takes_turns():
    """Local [c2, c3, c1, c6] and global [c4, c1, c2, c5]; relations [1, 2, 0, 3] and [4, 0, 5]."""
    found = search("hybrid")
    assert chunk_ids(found) == ["c2", "c4", "c3", "c1", "c6", "c5"]
    assert facts(found) == [
        "Ada taught Cora",
        "Cora saw Dorn",
        "Ada saw Dorn",
        "Ada met Babbage",
        "Dorn joins Elm",
        "Babbage knew Cora",
    ]
    assert titles(found) == ["Babbage", "Cora", "Ada", "Dorn", "Elm"]


def test_mix_begins_with_the_nearest_chunks():
    """Turns: c6, c2, c4; then c1, c3; then c5 alone is new. The rest is as in hybrid."""
    found = search("mix")
    assert chunk_ids(found) == ["c6", "c2", "c4", "c1", "c3", "c5"]
    hybrid = search("hybrid")
    assert (facts(found), titles(found)) == (facts(hybrid), titles(hybrid))


def test_naive_reads_chunks_alone():
    keywords = Told()
    found = search("naive", keywords)
    assert chunk_ids(found) == ["c6", "c1"] and not found.hits and not found.notes
    assert keywords.asked == []
    assert not make("naive")[0].reads_triplets and make("mix")[0].reads_triplets


def test_each_channel_is_asked_for_its_level():
    keywords = Told(["meeting", "teaching"], ["Babbage", "Ada"], Usage(calls=1))
    retriever, scores = make("mix", keywords)
    assert isinstance(retriever, Retriever)
    found = retriever.search([["one", "two"], [], ["three"], ["four"]], 9)
    assert keywords.asked == ["one; two", "three", "four"]
    assert scores["entities"].asked == [["Babbage, Ada"]] * 3
    assert scores["relations"].asked == [["meeting, teaching"]] * 3
    assert scores["chunks"].asked == [["one", "two"], ["three"], ["four"]]
    assert [one.usage.calls for one in found] == [1, 0, 1, 1]
    assert found[1] == Evidence()


def test_r09_a_question_without_an_entity_stands_for_its_names():
    retriever, scores = make("hybrid", Told(high=(), low=()))
    retriever.search([["one", "two"]], 9)
    assert scores["entities"].asked == scores["relations"].asked == [["one", "two"]]


def test_r09_nothing_is_near():
    far = {"named": (0.1,) * 6, "themed": (0.1,) * 7}
    assert search("hybrid", **far) == Evidence()
    assert chunk_ids(search("mix", **far)) == ["c6", "c1"]
    assert make("hybrid")[0].search([], 3) == []


def test_r18_equal_scores_go_by_row():
    reach = Reach(top_k=2)
    assert titles(search("local", named=(0, 0.5, 0.5, 0.5, 0, 0), reach=reach)) == [
        "Babbage",
        "Cora",
    ]
    # Rows 0 and 1 of the relations are taken; by their degrees 1 goes first.
    assert facts(search("global", themed=(0.5,) * 7, reach=reach)) == [
        "Ada taught Cora",
        "Ada met Babbage",
    ]


def test_reach_and_budget_bind():
    assert titles(search("local", reach=Reach(top_k=1))) == ["Babbage"]
    assert chunk_ids(search("naive", reach=Reach(chunk_top_k=1))) == ["c6"]
    assert titles(search("local", reach=Reach(threshold=0.05))) == ["Babbage", "Ada", "Cora"]
    assert chunk_ids(search("local", num_chunks=2)) == ["c2", "c3"]
    cut = search("local", max_chunk_tokens=3, max_relation_tokens=6, shows_entities=False)
    assert (len(cut.chunks), len(cut.hits), len(cut.notes)) == (1, 2, 0)


def test_the_defaults_are_those_of_the_paper():
    assert Reach() == Reach(60, 20, 0.2)
    budget = ContextBudget()
    assert (
        budget.max_entity_tokens,
        budget.max_relation_tokens,
        budget.max_chunk_tokens,
    ) == (4000, 4000, 4000)


@settings(max_examples=40, deadline=None)
@given(st.permutations(range(6)), st.integers(1, 6))
def test_local_as_the_code_scans(order, count):
    """The same lists by one pass over all that was said for each entity, as LightRAG's code."""
    selected = order[:count]
    scores = [0.0] * 6
    for place, entity in enumerate(selected):
        scores[entity] = 1 - place / 10
    names = GRAPH.names
    sources = {name: {c for c, s, _, o in SAID if name in (s, o)} for name in names}
    near = {
        name: {o if s == name else s for _, s, _, o in SAID if name in (s, o)} - {name}
        for name in names
    }
    wanted = {}
    for place, name in enumerate(names[entity] for entity in selected):
        for chunk in sources[name]:
            shared = sum(chunk in sources[other] for other in near[name])
            wanted.setdefault(chunk, (place, -shared, chunk))
    pairs = {
        tuple(sorted((name, other)))
        for name in (names[entity] for entity in selected)
        for other in near[name]
    }
    stated = {pair: sum({s, o} == set(pair) for _, s, _, o in SAID) for pair in pairs}
    by_degree = sorted(
        pairs, key=lambda one: (-len(near[one[0]]) - len(near[one[1]]), -stated[one], one)
    )
    found = search("local", named=scores)
    assert chunk_ids(found) == sorted(wanted, key=wanted.get)
    fields = [hit.proposition.triplet.fields for hit in found.hits]
    assert [tuple(sorted((s, o))) for s, _, o in fields] == by_degree


@given(st.lists(st.lists(st.integers(0, 9), unique=True), min_size=1, max_size=3))
def test_take_turns_is_a_loop_over_places(lists):
    wanted = []
    for place in range(max(map(len, lists))):
        for one in lists:
            if place < len(one) and one[place] not in wanted:
                wanted.append(one[place])
    assert take_turns([np.array(one, np.int64) for one in lists]).tolist() == wanted


ENCODER = HashingEncoder(256)


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    folder = tmp_path_factory.mktemp("light") / "index"
    return build_index(CHUNKS, FOUND, ENCODER, folder, extractor="t")


@pytest.mark.parametrize("mode", [mode for mode in MODES if mode != "naive"])
def test_over_an_index(mode, index):
    found = open_lightrag(index, ENCODER, RuleKeywords(), WordCounter(1.0), mode)
    [elm, empty] = found.search([["Elm joins Fenn?"], []], 9)
    assert "Elm joins Fenn" in facts(elm) and "c5" in chunk_ids(elm) and empty == Evidence()


def beside(index):
    """The vectors that were made of an index."""
    return [p for p in index.folder.parent.rglob("vectors.npy") if p.parent != index.folder]


def test_over_an_index_each_mode_embeds_what_it_needs(tmp_path):
    index = build_index(CHUNKS, FOUND, ENCODER, tmp_path / "index", extractor="t")
    parts = (index, ENCODER, RuleKeywords(), WordCounter(1.0))
    open_lightrag(*parts, "naive")
    assert not beside(index)
    for mode, count in (("local", 1), ("global", 2), ("mix", 2)):
        open_lightrag(*parts, mode)
        assert len(beside(index)) == count, mode


def test_what_cannot_be_opened(index, tmp_path):
    with pytest.raises(ValueError, match="mode is 'all', expected one of"):
        open_lightrag(index, ENCODER, RuleKeywords(), WordCounter(1.0), "all")
    with pytest.raises(ValueError, match="encoder"):
        open_lightrag(index, HashingEncoder(8), RuleKeywords(), WordCounter(1.0))
    bare = build_index(CHUNKS, FOUND, ENCODER, tmp_path / "i", extractor="t", embeds_chunks=False)
    with pytest.raises(ValueError, match="mode='mix' needs"):
        open_lightrag(bare, ENCODER, RuleKeywords(), WordCounter(1.0), "mix")


def test_r13_an_index_without_a_triplet(tmp_path):
    empty = build_index(CHUNKS, (), ENCODER, tmp_path / "index", extractor="t")
    for mode in ("hybrid", "mix"):
        found = open_lightrag(empty, ENCODER, RuleKeywords(), WordCounter(1.0), mode)
        ada, one = found.search([["Ada"], ["one two three"]], 3)
        assert ada == Evidence() and not one.hits and not one.notes
        assert chunk_ids(one) == (["c1", "c2", "c3"] if mode == "mix" else [])
