"""Reference: networkx."""

import networkx as nx
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from triax.corpora.demo_corpus import load_demo
from triax.extraction.verbalize import propositions
from triax.indexing.graph import build_graph
from triax.indexing.tables import TripletTables
from triax.records.documents import Chunk
from triax.retrieval.bfs import hops, undirected


def reference(graph, seeds, max_hops):
    """The same by networkx: the nearest of the seeds, -1 where there is none."""
    found = np.full(len(graph), -1)
    for seed in seeds:
        lengths = nx.single_source_shortest_path_length(graph, seed, cutoff=max_hops)
        for node, length in lengths.items():
            found[node] = length if found[node] < 0 else min(found[node], length)
    return found


@st.composite
def cases(draw):
    """Nodes, edges (loops and repeats too), seeds of each question, its nodes, and hops."""
    num_nodes = draw(st.integers(1, 12))
    nodes = st.integers(0, num_nodes - 1)
    edges = draw(st.lists(st.tuples(nodes, nodes), max_size=20))
    questions = draw(st.lists(st.tuples(st.sets(nodes), st.sets(nodes)), max_size=4))
    return num_nodes, edges, questions, draw(st.integers(0, 5))


def arrays(num_nodes, edges, sets):
    ends = np.array(edges, np.int64).reshape(-1, 2)
    masks = np.zeros((num_nodes, len(sets)), bool)
    for column, members in enumerate(sets):
        masks[list(members), column] = True
    return undirected(ends[:, 0], ends[:, 1], num_nodes), masks


@given(cases())
def test_hops_are_those_of_networkx(case):
    num_nodes, edges, questions, max_hops = case
    graph = nx.Graph(edges)
    graph.add_nodes_from(range(num_nodes))
    neighbours, seeds = arrays(num_nodes, edges, [seeds for seeds, _ in questions])
    _, allowed = arrays(num_nodes, edges, [allowed for _, allowed in questions])
    found = hops(neighbours, seeds, max_hops)
    within = hops(neighbours, seeds, max_hops, allowed)
    for column, (starts, own) in enumerate(questions):
        assert found[:, column].tolist() == reference(graph, starts, max_hops).tolist()
        part = nx.Graph(graph.subgraph(own))
        part.add_nodes_from(range(num_nodes))
        expected = reference(part, starts & own, max_hops)
        assert within[:, column].tolist() == expected.tolist()


def test_the_demo_graph_from_every_phrase_at_once():
    demo = load_demo()
    chunks = [Chunk(one.id, one.id, one.text, one.title) for one in demo.documents]
    tables = TripletTables.of(chunks, propositions(demo.extractions))
    graph = build_graph(tables, has_chunks=False)
    size = len(graph.phrases)
    edges = zip(graph.sources.tolist(), graph.targets.tolist(), strict=True)
    plain = nx.Graph(edges)
    plain.add_nodes_from(range(size))
    found = hops(undirected(graph.sources, graph.targets, size), np.eye(size, dtype=bool), 3)
    expected = np.array([reference(plain, [seed], 3) for seed in range(size)])
    assert size > 300 and found.max() == 3
    np.testing.assert_array_equal(found.T, expected)


def test_the_smallest():
    neighbours, seeds = arrays(2, [(0, 1)], [{0}, set()])
    assert hops(neighbours, seeds, 0).T.tolist() == [[0, -1], [-1, -1]]
    assert hops(neighbours, seeds, -1).max() == -1
    assert hops(neighbours, seeds[:, :0], 3).shape == (2, 0)
    none = np.zeros(0, np.int64)
    assert hops(undirected(none, none, 0), np.zeros((0, 1), bool), 3).shape == (0, 1)
