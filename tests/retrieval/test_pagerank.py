import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from triax.retrieval.pagerank import PageRank, cut_strips, iterations_for, personalised_pagerank


def random_graph(seed, num_nodes=90, num_edges=60):
    """Two components and more, isolated nodes, one hub with more edges than a strip holds."""
    random = np.random.default_rng(seed)
    half = num_nodes // 2
    pairs = {
        (min(a, b), max(a, b))
        for low in (0, half)
        for a, b in random.integers(low, low + half - 6, (num_edges // 2, 2)).tolist()
        if a != b
    }
    pairs |= {(0, other) for other in range(1, 38)}
    ours, theirs = np.array(sorted(pairs)).T
    weights = random.uniform(0.1, 5, len(ours))
    reset = random.random((5, num_nodes)) * (random.random((5, num_nodes)) < 0.2)
    reset[:, -1] = [1, 0, 0, 2, 0]  # isolated
    reset[1] = 0
    reset[1, 3] = 7.0
    edges = (np.r_[ours, theirs], np.r_[theirs, ours], np.r_[weights, weights])
    return edges, reset


def solved(edges, reset, damping):
    """The stationary vector from the definition: a dense matrix, dangling mass to the reset."""
    sources, targets, weights = edges
    size = reset.shape[1]
    matrix = np.zeros((size, size))
    np.add.at(matrix, (targets, sources), weights)
    leaving = matrix.sum(axis=0)
    found = []
    for row in reset / reset.sum(axis=1, keepdims=True):
        steps = np.where(leaving > 0, matrix / np.where(leaving > 0, leaving, 1), row[:, None])
        found.append(np.linalg.solve(np.eye(size) - damping * steps, (1 - damping) * row))
    return np.array(found)


@pytest.mark.parametrize("damping", [0.5, 0.85])
def test_r12_equals_the_solution_of_the_dense_system(damping):
    edges, reset = random_graph(0)
    found = personalised_pagerank(*edges, reset, damping)
    expected = solved(edges, reset, damping)
    np.testing.assert_allclose(found, expected, atol=1e-5)
    exact = personalised_pagerank(*edges, reset, damping, 60)
    np.testing.assert_allclose(exact, expected, atol=1e-6)
    np.testing.assert_allclose(exact.sum(axis=1), 1, atol=1e-5)


@pytest.mark.parametrize("seed", [0, 1])
def test_r12_equals_igraph(seed):
    igraph = pytest.importorskip("igraph")
    (sources, targets, weights), reset = random_graph(seed)
    once = sources < targets
    graph = igraph.Graph(n=reset.shape[1], edges=np.c_[sources, targets][once].tolist())
    found = personalised_pagerank(sources, targets, weights, reset, 0.5, 24)
    for row, ours in zip(reset, found):
        theirs = graph.personalized_pagerank(
            damping=0.5,
            directed=False,
            weights=weights[once].tolist(),
            reset=row.tolist(),
            implementation="prpack",
        )
        np.testing.assert_allclose(ours, theirs, atol=1e-6)


def test_by_hand_on_two_nodes():
    # x = (1-a) (1 + a^2 + ...), y = (1-a) (a + a^3 + ...): 1 / (1 + a) and a / (1 + a).
    edges = (np.array([0, 1]), np.array([1, 0]), np.array([3.0, 3.0]))
    found = personalised_pagerank(*edges, np.array([[2.0, 0.0]]), 0.5, 30)
    np.testing.assert_allclose(found, [[2 / 3, 1 / 3]], atol=1e-7)


@given(st.integers(0, 10**6), st.integers(0, 6))
@settings(max_examples=4, deadline=None)
def test_r12_mass_is_kept_after_any_number_of_steps(seed, steps):
    edges, _ = random_graph(0)
    reset = np.random.default_rng(seed).random((5, 90))
    found = personalised_pagerank(*edges, reset, 0.5, steps)
    np.testing.assert_allclose(found.sum(axis=1), 1, atol=1e-5)
    assert (found >= 0).all()


def test_every_edge_is_in_one_strip():
    (sources, targets, weights), reset = random_graph(3)
    layout = cut_strips(sources, targets, weights, reset.shape[1])
    share = {}
    total = np.bincount(sources, weights)
    for source, target, weight in zip(sources, targets, weights):
        share[int(source), int(target)] = weight / total[source]
    node_at = layout.nodes.tolist()
    found, position = {}, 0
    for places, values in layout.strips:
        for row in range(len(places)):
            for place, value in zip(places[row], values[row]):
                if value > 0:
                    found[node_at[place], node_at[position + row]] = value
        position += len(places)
    assert layout.num_large >= 1
    for row, owner in enumerate(layout.owners):
        for place, value in zip(layout.parts[0][row], layout.parts[1][row]):
            if value > 0:
                found[node_at[place], node_at[position + owner]] = value
    assert found == pytest.approx(share)
    assert sorted(node for node in node_at if node < 90) == list(range(90))


def test_the_last_nodes_alone_and_tiles_give_the_same():
    edges, reset = random_graph(0)
    whole = PageRank(*edges, 90)(reset, 0.5, 24)
    tiled = PageRank(*edges, 90, tile=2)
    np.testing.assert_allclose(tiled(reset, 0.5, 24, first=70), whole[:, 70:], atol=1e-7)


def test_it_stops_when_the_order_of_the_best_is_stable():
    edges, reset = random_graph(0)
    solver = PageRank(*edges, 90)
    whole = solver(reset, 0.5, 60)
    early = solver(reset, 0.5, 60, stable_top=3)
    best = [np.argsort(-found, axis=1)[:, :3].tolist() for found in (whole, early)]
    assert best[0] == best[1]
    # It did stop: a result after 60 steps would be exact to rounding.
    assert 1e-6 < np.abs(early - whole).max() < 1e-2


def test_r09_no_edge_no_reset_no_question():
    none = np.zeros(0, np.int64)
    empty = PageRank(none, none, np.zeros(0), 3)
    found = empty(np.array([[0, 1.0, 3.0], [0, 0, 0]]))
    np.testing.assert_allclose(found, [[0, 0.25, 0.75], [0, 0, 0]])
    assert empty(np.zeros((0, 3))).shape == (0, 3)
    assert PageRank(none, none, np.zeros(0), 0)(np.zeros((2, 0))).shape == (2, 0)


def test_what_cannot_be_solved_is_refused():
    ends = np.array([0, 1]), np.array([1, 0])
    with pytest.raises(ValueError, match="not positive"):
        PageRank(*ends, np.array([1.0, 0.0]), 2)
    with pytest.raises(ValueError, match="both directions"):
        PageRank(np.array([0]), np.array([1]), np.ones(1), 2)
    solver = PageRank(*ends, np.ones(2), 2)
    with pytest.raises(ValueError, match="damping is 1"):
        solver(np.ones((1, 2)), 1.0)
    for bad in (-1.0, np.nan, np.inf):
        with pytest.raises(ValueError, match="negative or infinite"):
            solver(np.array([[1.0, bad]]))
    with pytest.raises(ValueError, match="3 columns for 2 nodes"):
        solver(np.ones((1, 3)))


def test_iterations_follow_from_the_rate():
    # 0.5 / (1 + sqrt(0.75)) = 0.26795; ln(5e-6) / ln(0.26795) = 9.27
    assert iterations_for(0.5) == 10 and iterations_for(0.0) == 1
    assert iterations_for(0.5, 1e-6) == 12  # ln(5e-7) / ln(0.26795) = 11.02


CHILD = """
import sys, jax, numpy as np
assert jax.device_count() == 8
from triax.models.mesh import open_mesh
from triax.retrieval.pagerank import PageRank
given = np.load(sys.argv[1])
edges = given["a"], given["b"], given["w"]
found = PageRank(*edges, 90, tile=2)(given["reset"], 0.5, 24)
grid = PageRank(*edges, 90, tile=2, mesh=open_mesh(2, 4))(given["reset"], 0.5, 24)
assert (grid == found).all()
np.save(sys.argv[2], found)
"""


def test_eight_devices_give_the_same(tmp_path):
    (sources, targets, weights), reset = random_graph(0)
    reset = np.concatenate([reset, reset[::-1], reset, reset])  # more than one tile of 8 x 2
    np.savez(tmp_path / "in.npz", a=sources, b=targets, w=weights, reset=reset)
    environment = {
        **os.environ,
        "XLA_FLAGS": "--xla_force_host_platform_device_count=8",
        "JAX_PLATFORMS": "cpu",
        "PYTHONPATH": str(Path(__file__).parents[2] / "src"),
    }
    command = [sys.executable, "-c", CHILD, str(tmp_path / "in.npz"), str(tmp_path / "out.npy")]
    subprocess.run(command, env=environment, check=True, timeout=120)
    found = np.load(tmp_path / "out.npy")
    np.testing.assert_allclose(
        found, personalised_pagerank(sources, targets, weights, reset, 0.5, 24), atol=1e-7
    )
