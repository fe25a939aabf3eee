import itertools
import math

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from triax.extraction.verbalize import propositions
from triax.indexing.entity_graph import build_entity_graph
from triax.indexing.tables import TripletTables
from triax.records.documents import Chunk
from triax.records.triplets import Extraction, Triplet
from triax.retrieval.triplet_beam import Beam, Neighbours, breadth_first, search_chains


def tables_of(pairs):
    """One proposition a pair of names, each of one chunk."""
    found = [Extraction("c", tuple(Triplet(a, "r", b) for a, b in pairs))]
    return TripletTables.of([Chunk("c", "c", "text")], propositions(found))


def rows_of(tables, pairs):
    fields = [one.triplet.fields for one in tables.all_propositions()]
    return [fields.index((a, "r", b)) for a, b in pairs]


names = st.sampled_from("abcdef")
pair_sets = st.lists(st.tuples(names, names), min_size=1, max_size=8, unique=True)


@given(pair_sets)
def test_neighbours_are_those_of_the_line_graph(pairs):
    tables = tables_of(pairs)
    found = [one.triplet.fields for one in tables.all_propositions()]
    wanted = nx.Graph()
    wanted.add_nodes_from(range(len(found)))
    for one, two in itertools.combinations(range(len(found)), 2):
        if {found[one][0], found[one][2]} & {found[two][0], found[two][2]}:
            wanted.add_edge(one, two)
    neighbours = Neighbours(build_entity_graph(tables))
    for row in range(len(found)):
        assert neighbours.of(row).tolist() == sorted(wanted[row])


def test_a_chain_grows_where_it_comes_nearer():
    """q = (1, 1) / sqrt 2. After a-b (1, 0), b-c (0, 1) completes it, b-d (1, 0) does not."""
    pairs = [("a", "b"), ("b", "c"), ("b", "d"), ("x", "y")]
    tables = tables_of(pairs)
    ab, bc, bd, xy = rows_of(tables, pairs)
    vectors = np.zeros((4, 2), np.float32)
    vectors[[ab, bd]] = (1, 0)
    vectors[bc] = (0, 1)
    vectors[xy] = (0.6, 0.8)
    query = np.array([1, 1], np.float32) / math.sqrt(2)
    neighbours = Neighbours(build_entity_graph(tables))
    found = search_chains(query, [ab], vectors, neighbours, Beam(2, 2, 2.0))
    # cos 1 and cos 0.7071; the best extension counts exp(-1/2), the second exp(-2/2).
    assert [chain for chain, _ in found] == [(ab, bc), (ab, bd)]
    assert [score for _, score in found] == pytest.approx(
        [math.exp(-0.5), math.sqrt(0.5) * math.exp(-1)], abs=1e-6
    )
    # What has no neighbour ends early, with its own score: cos((0.6, 0.8), q) = 1.4 / sqrt 2.
    found = search_chains(query, [xy], vectors, neighbours, Beam(2, 3))
    assert found == [((xy,), pytest.approx(1.4 / math.sqrt(2), abs=1e-6))]


def test_chains_can_be_encoded_instead():
    pairs = [("a", "b"), ("b", "c"), ("b", "d")]
    tables = tables_of(pairs)
    ab, bc, bd = rows_of(tables, pairs)
    vectors = np.tile(np.array([1.0, 0.0], np.float32), (3, 1))
    asked = []

    def encode(chains):
        asked.extend(chains)
        return np.array([[1.0 if bd in chain else 0.5, 0.0] for chain in chains], np.float32)

    found = search_chains(
        vectors[0], [ab], vectors, Neighbours(build_entity_graph(tables)), Beam(1, 2), encode
    )
    assert found[0][0] == (ab, bd)
    assert set(asked) == {(ab,), (ab, bc), (ab, bd)}


@settings(max_examples=50)
@given(pair_sets, st.integers(1, 4), st.integers(1, 3), st.integers(0, 100))
def test_chains_share_names_and_end_in_different_triplets(pairs, width, length, seed):
    tables = tables_of(pairs)
    rng = np.random.default_rng(seed)
    vectors = rng.normal(size=(len(pairs), 3)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    neighbours = Neighbours(build_entity_graph(tables))
    found = search_chains(vectors[0], range(len(pairs)), vectors, neighbours, Beam(width, length))
    assert len(found) <= width and all(len(chain) <= length for chain, _ in found)
    for chain, score in found:
        assert score > 0 and len(set(chain)) == len(chain)
        for one, two in itertools.pairwise(chain):
            assert two in neighbours.of(one)
    ends = [chain[-1] for chain, _ in found]
    assert len(set(ends)) == len(ends)


def test_r09_nothing_to_start_from():
    neighbours = Neighbours(build_entity_graph(tables_of([("a", "b")])))
    vectors = np.ones((1, 1), np.float32)
    assert search_chains(np.ones(1), [], vectors, neighbours) == []
    assert search_chains(-np.ones(1), [0], vectors, neighbours) == []


def test_breadth_first_takes_first_triplets_first():
    assert breadth_first([(1, 2), (3, 4), (1, 5)]) == [1, 3, 2, 4, 5]
    assert breadth_first([]) == []


def test_a_number_below_one_is_refused():
    with pytest.raises(ValueError, match="not above 0"):
        Beam(width=0)
