import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrieval.six_entities import ADA, BABBAGE, CHUNKS, CORA, DORN, ELM, FENN, FOUND, GRAPH, TABLES
from triax.indexing.communities import Clustering
from triax.indexing.hashing import HashingEncoder
from triax.indexing.reporters import ExtractiveReporter
from triax.indexing.reports import CommunityReports, Report, open_reports
from triax.indexing.updates import build_index
from triax.models.token_counter import WordCounter
from triax.records.evidence import Evidence
from triax.records.verbs import Retriever
from triax.retrieval.graphrag_local import (
    LocalBudget,
    LocalSearch,
    open_local_search,
    rank_chunks,
    rank_relations,
    rank_reports,
)


class Given:
    """Scores of entities by hand; an empty group has none."""

    def __init__(self, *scores):
        self.row = np.array(scores, np.float32)

    def scores(self, groups):
        return np.stack([self.row if group else 0 * self.row for group in groups])


def report(title, level, rating, *entities):
    return Report(title, level, "", title, "two words", rating, ("a finding",), entities, ("c1",))


REPORTS = CommunityReports(
    (
        report("wide", 0, 1.0, ADA, BABBAGE, CORA),
        report("other", 0, 9.0, DORN, ELM, FENN),
        report("rated", 1, 2.0, ADA, BABBAGE),
        report("deep", 3, 9.0, ADA, BABBAGE),
    )
)


def make(*scores, **budget):
    return LocalSearch(
        GRAPH, TABLES, Given(*scores), REPORTS, WordCounter(1.0), LocalBudget(**budget)
    )


def relations(*rows):
    return [f"{GRAPH.names[GRAPH.heads[r]]}-{GRAPH.names[GRAPH.tails[r]]}" for r in rows]


def ids(evidence):
    return [found.chunk.id for found in evidence.chunks]


def facts(evidence):
    return [hit.proposition.text for hit in evidence.hits]


def titles(evidence):
    return [found.note.title for found in evidence.notes]


def test_a_question_by_hand():
    """Babbage is nearest, then Ada; both are in the communities "wide" and "rated".

    Chunks: c1, c2, c3 mention Babbage and state 1 of its relations each (c3: with Cora); of Ada
    c6 is left, which states none. Relations: Ada-Babbage is inside. Outside: Cora is related to
    both, Dorn to Ada alone; of Cora's, Ada-Cora (3 + 3) stands before Babbage-Cora (2 + 3).
    """
    search = make(0.5, 0.9, 0, 0, 0, 0, num_entities=2)
    assert isinstance(search, Retriever)
    found, none = search.search([["q"], []], 9)
    assert ids(found) == ["c1", "c2", "c3", "c6"]
    assert [one.score for one in found.chunks] == pytest.approx([1, 1 / 2, 1 / 3, 1 / 4])
    assert facts(found) == [
        "Ada met Babbage",
        "Ada taught Cora",
        "Babbage knew Cora",
        "Ada saw Dorn",
    ]
    assert [hit.chunk_ids for hit in found.hits] == [("c1", "c2"), ("c2",), ("c3",), ("c3",)]
    # Two entities match each; "rated" has the higher rating; "deep" lies below level 2.
    assert titles(found) == ["rated", "wide"]
    assert found.notes[0].note.text == "two words\na finding"
    assert found.notes[0].note.chunk_ids == ("c1",)
    assert (none, found.usage) == (Evidence(), Evidence().usage)


def test_reports_go_by_matches_before_ratings():
    matches, ratings = np.array([1.0, 0, 2, 2, 2]), np.array([9.0, 9, 1, 3, 3])
    assert rank_reports(matches, ratings).tolist() == [3, 4, 2, 0]
    found = make(0.9, 0.8, 0.7, 0.6, 0, 0).search([["q"]], 9)[0]
    # wide: Ada, Babbage, Cora; rated: Ada, Babbage; other: Dorn, with the highest rating.
    assert titles(found) == ["wide", "rated", "other"]
    assert titles(make(0.9, 0, 0, 0, 0, 0, max_level=3).search([["q"]], 9)[0])[0] == "deep"
    assert titles(make(0.9, 0, 0, 0, 0, 0, max_level=0).search([["q"]], 9)[0]) == ["wide"]


def test_chunks_go_by_their_first_entity_then_by_its_relations():
    mentions = np.array([[0, 1, 1, 0, 0], [3, 1, 0, 1, 0.0]])
    counts = np.array([[0, 1, 2, 0, 0], [1, 9, 0, 1, 0.0]])
    # The first entity: chunk 2 states two of its relations, 1 one. Of the second entity 0 and 3.
    assert rank_chunks(mentions, counts).tolist() == [2, 1, 0, 3]


def test_a_chunk_is_ranked_by_relations_not_by_mentions():
    """c2 states two relations of Ada (with Babbage and Cora), c3 and c1 one, c6 none."""
    found = make(1, 0, 0, 0, 0, 0).search([["q"]], 9)[0]
    assert ids(found) == ["c2", "c1", "c3", "c6"]


def test_relations_inside_go_before_those_that_lead_out():
    inner = rank_relations(GRAPH, np.array([ADA, BABBAGE, CORA]), 10).tolist()
    # Inside by degrees: Ada-Cora 6, Ada-Babbage 5 (weight 2), Babbage-Cora 5. Outside: Dorn is
    # related to two of them, Ada-Dorn and Cora-Dorn have 6 each, and go by row.
    assert relations(*inner) == ["Ada-Cora", "Ada-Babbage", "Babbage-Cora", "Ada-Dorn", "Cora-Dorn"]
    assert relations(*rank_relations(GRAPH, np.array([ADA, BABBAGE, CORA]), 1).tolist()) == [
        *relations(*inner[:3]),
        "Ada-Dorn",
    ]


def test_links_go_before_degrees():
    # Elm and Ada: Dorn is related to both, Cora (3 relations) and Babbage to Ada, Fenn to Elm.
    found = rank_relations(GRAPH, np.array([ELM, ADA]), 10).tolist()
    assert relations(*found) == [
        "Ada-Dorn",
        "Dorn-Elm",
        "Ada-Cora",
        "Ada-Babbage",
        "Elm-Fenn",
    ]


def test_relations_out_are_limited_for_each_entity():
    none = make(0.9, 0.8, 0, 0, 0, 0, relations_per_entity=0).search([["q"]], 9)[0]
    assert facts(none) == ["Ada met Babbage"]
    one = make(0.9, 0.8, 0, 0, 0, 0, relations_per_entity=1).search([["q"]], 9)[0]
    assert facts(one) == ["Ada met Babbage", "Ada taught Cora", "Babbage knew Cora"]


def test_r08_each_kind_has_its_budget_and_ends_where_it_is_full():
    """Chunks have three words each, facts three, reports five (title, summary, finding)."""
    limits = {"max_chunk_tokens": 7, "max_relation_tokens": 8, "max_report_tokens": 9}
    found = make(0.9, 0.8, 0, 0, 0, 0, **limits).search([["q"]], 9)[0]
    assert (len(found.chunks), len(found.hits), len(found.notes)) == (2, 2, 1)
    # A hit names only sources that entered.
    assert {one for hit in found.hits for one in hit.chunk_ids} <= set(ids(found))
    none = make(0.9, 0.8, 0, 0, 0, 0, **dict.fromkeys(limits, 0)).search([["q"]], 9)[0]
    assert none == Evidence()


def test_r12_the_number_of_chunks_is_bounded_too():
    search = make(0.9, 0.8, 0, 0, 0, 0)
    assert [len(search.search([["q"]], k)[0].chunks) for k in (0, 1, 3, 99)] == [0, 1, 3, 4]


def test_the_defaults_are_those_of_graphrag():
    budget = LocalBudget()
    shares = np.array([budget.max_report_tokens, budget.max_chunk_tokens])
    shares = [*shares / 12000, budget.max_relation_tokens / 12000]
    assert shares == pytest.approx([0.15, 0.5, 0.35])
    assert (budget.num_entities, budget.max_level, budget.relations_per_entity) == (20, 2, 10)


selections = st.lists(st.integers(0, 5), min_size=1, max_size=6, unique=True)


@given(selections, st.integers(0, 70))
def test_relations_as_graphrag_scans_for_them(selected, limit):
    """The same order by one pass over all relations for each entity, as its code goes."""
    degree = dict(enumerate(GRAPH.degrees.tolist()))
    ends = list(zip(GRAPH.heads.tolist(), GRAPH.tails.tolist()))
    rank = {row: degree[h] + degree[t] for row, (h, t) in enumerate(ends)}
    inside = [r for r, (h, t) in enumerate(ends) if h in selected and t in selected]
    out = [r for r, (h, t) in enumerate(ends) if (h in selected) != (t in selected)]

    def links(row):
        (outer,) = set(ends[row]) - set(selected)
        return len({one for r in out if outer in ends[r] for one in ends[r]} - {outer})

    weight = GRAPH.weights.tolist()
    wanted = sorted(inside, key=lambda r: (-rank[r], -weight[r], r))
    wanted += sorted(out, key=lambda r: (-links(r), -rank[r], -weight[r], r))[:limit]
    assert rank_relations(GRAPH, np.array(selected), limit).tolist() == wanted


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    folder = tmp_path_factory.mktemp("local") / "index"
    return build_index(CHUNKS, FOUND, HashingEncoder(256), folder, extractor="t")


def test_over_an_index_with_its_own_reports(index):
    reports = open_reports(
        index, ExtractiveReporter(), WordCounter(1.0), Clustering(max_cluster_size=4)
    )
    search = open_local_search(
        index, HashingEncoder(256), reports, WordCounter(1.0), num_entities=2
    )
    fenn, empty = search.search([["Who joins Fenn?"], []], 3)
    assert ids(fenn)[0] == "c5" and facts(fenn)[0] == "Elm joins Fenn"
    assert fenn.notes and empty == Evidence()
    with pytest.raises(ValueError, match="encoder"):
        open_local_search(index, HashingEncoder(8), reports, WordCounter(1.0))


def test_r13_an_index_without_a_triplet_finds_nothing(tmp_path):
    empty = build_index(CHUNKS, (), HashingEncoder(16), tmp_path / "index", extractor="t")
    reports = open_reports(empty, ExtractiveReporter(), WordCounter(1.0), Clustering())
    search = open_local_search(empty, HashingEncoder(16), reports, WordCounter(1.0))
    assert search.search([["Ada"], []], 3) == [Evidence(), Evidence()]
