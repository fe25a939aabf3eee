import random
import sys

import graspologic_native
import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from triax.extraction.verbalize import propositions
from triax.indexing.communities import Clustering, find_communities
from triax.indexing.entity_graph import build_entity_graph
from triax.indexing.tables import TripletTables
from triax.records.documents import Chunk
from triax.records.triplets import Extraction, Triplet


def graph_of(edges, shuffled=None):
    """One chunk an edge; nodes are numbers, and their names sort as they do."""
    edges = list(edges)
    if shuffled is not None:
        random.Random(shuffled).shuffle(edges)
    chunks = [Chunk(f"{a}-{b}", f"{a}-{b}", "text") for a, b in edges]
    triplets = [Triplet(f"n{a:03}", "joins", f"n{b:03}") for a, b in edges]
    found = [Extraction(chunk.id, (one,)) for chunk, one in zip(chunks, triplets)]
    return build_entity_graph(TripletTables.of(chunks, propositions(found)))


def sets(graph, communities, level):
    """Members of each community of a level, as numbers of nodes."""
    rows = np.flatnonzero(communities.levels == level)
    names = np.array([int(name[1:]) for name in graph.entities] or [0])
    return [set(names[communities.members[[row]].nonzero()[1]].tolist()) for row in rows]


def modularity(graph, parts):
    edges = [(str(h), str(t), float(w)) for h, t, w in zip(graph.heads, graph.tails, graph.weights)]
    row_of = {int(name[1:]): row for row, name in enumerate(graph.entities)}
    labels = {str(row_of[node]): n for n, part in enumerate(parts) for node in part}
    return graspologic_native.modularity(edges, labels)


def test_the_karate_club_has_the_best_partition_that_is_known():
    """0.4198 is the optimum (Brandes et al., 2008, "On modularity clustering", section 7)."""
    club = nx.Graph(nx.karate_club_graph().edges)
    graph = graph_of(club.edges)
    parts = sets(graph, find_communities(graph), 0)
    assert nx.community.modularity(club, parts, weight=None) == pytest.approx(0.4198, abs=1e-4)
    assert nx.community.is_partition(club, parts)


@pytest.mark.parametrize(
    ("wanted", "slack"),
    [(nx.gnm_random_graph(60, 60 + 40 * seed, seed=seed), 0.03) for seed in range(4)]
    + [(nx.planted_partition_graph(6, 12, 0.5, 0.03, seed=seed), 0.005) for seed in range(4)],
)
def test_modularity_is_that_of_networkx_and_no_worse_than_louvain(wanted, slack):
    """GraphRAG lets Leiden run once; where there is no structure, that costs a little."""
    wanted = wanted.subgraph(set(wanted) - set(nx.isolates(wanted)))
    graph = graph_of(wanted.edges)
    parts = sets(graph, find_communities(graph), 0)
    found = nx.community.modularity(wanted, parts)
    assert found == pytest.approx(modularity(graph, parts), abs=1e-9)
    louvain = nx.community.louvain_communities(wanted, seed=0)
    assert found >= nx.community.modularity(wanted, louvain) - slack


def test_weights_count():
    """A square; two of its sides are stated in many chunks, so they are the communities."""
    said = [(0, 1)] * 9 + [(1, 2)] + [(2, 3)] * 9 + [(3, 0)]
    chunks = [Chunk(f"c{n}", f"c{n}", "text") for n in range(len(said))]
    found = [
        Extraction(chunk.id, (Triplet(f"n{a}", "joins", f"n{b}"),))
        for chunk, (a, b) in zip(chunks, said)
    ]
    graph = build_entity_graph(TripletTables.of(chunks, propositions(found)))
    assert sets(graph, find_communities(graph), 0) == [{0, 1}, {2, 3}]


def test_large_communities_are_divided_and_lead_to_their_parents():
    club = nx.karate_club_graph()
    graph = graph_of(club.edges)
    found = find_communities(graph, Clustering(max_cluster_size=6))
    widest, inner = sets(graph, found, 0), sets(graph, found, 1)
    first = len(widest)
    assert found.parents[:first].tolist() == [-1] * first and len(inner) > 1
    for part, parent in zip(inner, found.parents[first:]):
        assert part < widest[parent] and len(widest[parent]) >= 6
    for number, part in enumerate(widest):
        parts = [one for one, p in zip(inner, found.parents[first:]) if p == number]
        assert not parts or (set().union(*parts) == part and sum(map(len, parts)) == len(part))
    assert found.labels(1).max() < len(found.levels) and found.labels(9).max() == -1


def same(one, other):
    return all(
        np.array_equal(a, b)
        for a, b in [
            (one.levels, other.levels),
            (one.parents, other.parents),
            (one.members.toarray(), other.members.toarray()),
        ]
    )


@pytest.mark.parametrize("shuffled", range(3))
def test_r13_the_order_of_documents_does_not_matter(shuffled):
    edges = list(nx.karate_club_graph().edges)
    given = find_communities(graph_of(edges), Clustering(max_cluster_size=4))
    other = find_communities(graph_of(edges, shuffled), Clustering(max_cluster_size=4))
    assert same(given, other)


@pytest.mark.parametrize(
    "edges",
    [[(0, 1)], nx.star_graph(40).edges, nx.complete_graph(30).edges],
    ids=["pair", "star", "clique"],
)
def test_r13_what_modularity_does_not_divide_stays_whole(edges):
    graph = graph_of(edges)
    found = find_communities(graph)
    assert found.levels.tolist() == [0]
    assert sets(graph, found, 0) == [set(range(len(graph.entities)))]


def test_r13_nothing_and_entities_without_a_relation():
    empty = build_entity_graph(TripletTables.of([Chunk("a", "a", "text")], ()))
    assert find_communities(empty).members.shape == (0, 0)
    assert len(find_communities(empty, Clustering(only_largest=True)).levels) == 0
    graph = graph_of([(0, 0), (1, 1)])
    found = find_communities(graph)
    assert sets(graph, found, 0) == [{0}, {1}] and found.parents.tolist() == [-1, -1]
    # Of components of equal size the first is the largest.
    assert sets(graph, find_communities(graph, Clustering(only_largest=True)), 0) == [{0}]


numbers = st.integers(0, 14)


@given(st.sets(st.tuples(numbers, numbers), max_size=40), st.integers(1, 5))
def test_r13_r14_levels_partition_what_was_divided(edges, size):
    graph = graph_of(sorted(edges))
    found = find_communities(graph, Clustering(max_cluster_size=size))
    # Every entity of every component is in one community of the widest.
    nodes = {node for edge in edges for node in edge}
    assert sum(map(len, sets(graph, found, 0))) == len(nodes)
    assert set().union(*sets(graph, found, 0)) == nodes
    sizes = found.members.sum(axis=1)
    for row, parent in enumerate(found.parents.tolist()):
        if parent >= 0:
            assert found.levels[row] == found.levels[parent] + 1
            assert 0 < sizes[row] < sizes[parent] and sizes[parent] >= size


def test_r14_no_component_is_dropped_unless_asked_for():
    """A triangle and a pair: GraphRAG clusters the triangle only."""
    graph = graph_of([(0, 1), (1, 2), (2, 0), (5, 6)])
    assert sets(graph, find_communities(graph), 0) == [{0, 1, 2}, {5, 6}]
    largest = find_communities(graph, Clustering(only_largest=True))
    assert sets(graph, largest, 0) == [{0, 1, 2}]


def test_a_missing_library_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "graspologic_native", None)
    with pytest.raises(ImportError, match=r"pip install 'triax\[systems\]'"):
        find_communities(graph_of([(0, 1)]))
