import os
import subprocess
import sys
from pathlib import Path

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from triax.indexing.flat import FlatSearch, pad_groups
from triax.indexing.search import search
from triax.indexing.tables import Sources
from triax.models.mesh import open_mesh

ROWS, CHUNKS, DIMENSION = 43, 12, 3


def brute_force(vectors, lists, group, num_chunks, floor=0):
    """T2RAG's walk, word for word, on integers: their products are exact in any arithmetic."""
    scores = [max(int(row @ query) for query in group) for row in vectors.astype(int)]
    hits, chunks = [], {}
    for row in sorted(range(len(scores)), key=lambda row: (-scores[row], row)):
        if len(chunks) >= num_chunks:
            break
        if scores[row] <= floor:
            continue
        hits.append(row)
        for chunk in sorted(lists[row]):
            if len(chunks) < num_chunks and chunk not in chunks:
                chunks[chunk] = scores[row]
    return tuple(hits), chunks


def draw(seed, spread):
    """Rows of small integers, many of them equal, each from one to three chunks."""
    random = np.random.default_rng(seed)
    vectors = random.integers(-spread, spread + 1, (ROWS, DIMENSION)).astype(np.float32)
    lists = [sorted(random.choice(CHUNKS, random.integers(1, 4), False)) for _ in range(ROWS)]
    offsets = np.cumsum([0, *map(len, lists)], dtype=np.int64)
    sources = Sources(offsets, np.concatenate(lists).astype(np.int32), CHUNKS)
    queries = random.integers(-spread, spread + 1, (5, DIMENSION)).astype(np.float32)
    return vectors, lists, sources, [queries[:1], queries[1:3], queries[3:3], queries[2:]]


def check(engine, seed, spread, num_chunks, depth):
    vectors, lists, sources, groups = draw(seed, spread)
    found = search(vectors, sources, groups, num_chunks, engine(vectors, sources), depth=depth)
    for group, walk in zip(groups, found):
        if not len(group):
            assert walk.rows == ()
            continue
        rows, chunks = brute_force(vectors, lists, group.astype(int), num_chunks)
        assert walk.rows == rows
        assert dict(zip(walk.chunk_rows, walk.chunk_scores)) == chunks
        assert list(walk.chunk_rows) == list(chunks)


def tiled(vectors, sources):
    return FlatSearch(vectors, sources, open_mesh(devices=jax.devices()[:1]), tile=16)


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 10**6), st.sampled_from([0, 1, 3]), st.sampled_from([1, 3, 7, 50]))
def test_finds_what_the_plain_walk_finds(seed, spread, num_chunks):
    check(tiled, seed, spread, num_chunks, depth=2)


def test_r11_the_depth_is_counted_and_not_guessed():
    """Fifty rows of one chunk before the next chunk: one count, one more search."""
    scores = np.linspace(0.9, 0.1, 60, dtype=np.float32)
    vectors = np.stack([scores, np.sqrt(1 - scores**2)], axis=1)
    chunk_of = np.array([0] * 50 + list(range(1, 11)), np.int32)
    sources = Sources(np.arange(61), chunk_of, 11)
    engine, depths = tiled(vectors, sources), []
    plain = engine.nearest
    engine.nearest = lambda groups, depth: depths.append(depth) or plain(groups, depth)
    query = np.array([[1, 0]], np.float32)
    found = search(vectors, sources, [query], 2, engine, depth=4)[0]
    assert found.rows == tuple(range(51)) and found.chunk_rows == (0, 1)
    assert depths == [4, 64]


def test_groups_are_padded_to_powers_of_two_with_their_own_first_query():
    groups = [np.full((1, 2), 1, np.float32), np.arange(6, dtype=np.float32).reshape(3, 2)]
    padded = pad_groups([*groups, groups[0]])
    assert padded.shape == (4, 4, 2)
    assert (padded[0] == 1).all() and not padded[3].any()
    np.testing.assert_array_equal(padded[1], [[0, 1], [2, 3], [4, 5], [0, 1]])


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_equal_vectors_keep_the_order_of_rows_and_half_precision_is_kept(dtype):
    random = np.random.default_rng(1)
    vectors = np.repeat(random.normal(size=(9, 8)), 5, axis=0)
    vectors = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(dtype)
    sources = Sources.identity(45)
    query = vectors[20:21].astype(np.float32)
    found = search(vectors, sources, [query], 7, tiled(vectors, sources), depth=4)[0]
    assert found.rows[:5] == (20, 21, 22, 23, 24)
    np.testing.assert_allclose(found.scores[0], 1, atol=2e-3)


CHILD = """
import sys
sys.path.insert(0, sys.argv[1])
import jax, numpy as np
from test_flat import check, tiled
from triax.indexing.flat import FlatSearch
from triax.indexing.search import search
from triax.indexing.small import NumpySearch
from triax.indexing.tables import Sources
from triax.models.mesh import open_mesh
assert jax.device_count() == 8
def spread_out(vectors, sources):
    return FlatSearch(vectors, sources, tile=4)
def in_a_grid(vectors, sources):
    found = FlatSearch(vectors, sources, open_mesh(2, 4), tile=4)
    assert found._vectors.addressable_shards[0].data.nbytes * 8 == found._vectors.nbytes
    return found
for seed in range(6):
    check((spread_out, in_a_grid)[seed % 2], seed, seed % 3 + 1, (3, 7)[seed % 2], 2)
random = np.random.default_rng(0)
vectors = np.repeat(random.normal(size=(100, 24)), 3, axis=0)
vectors = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
chunks = random.integers(0, 40, 300).astype(np.int32)
sources = Sources(np.arange(301), chunks, 40)
groups = [vectors[i : i + 2] + 0.1 for i in range(0, 300, 60)]
one, many, grid, plain = (
    search(vectors, sources, groups, 7, engine(vectors, sources), depth=4)
    for engine in (tiled, spread_out, in_a_grid, NumpySearch)
)
assert one == many == grid == plain
print("same")
"""


def test_eight_devices_give_the_result_of_one():
    environment = {
        **os.environ,
        "PYTHONPATH": str(Path(__file__).parents[2] / "src"),
        "XLA_FLAGS": "--xla_force_host_platform_device_count=8",
        "JAX_PLATFORMS": "cpu",
    }
    command = [sys.executable, "-c", CHILD, str(Path(__file__).parent)]
    child = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert child.stdout.split() == ["same"], child.stderr
