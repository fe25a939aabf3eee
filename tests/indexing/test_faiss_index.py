import importlib.metadata
import sys

import numpy as np
import pytest

from triax.indexing.faiss_index import FaissSearch, import_faiss
from triax.indexing.flat import FlatSearch
from triax.indexing.search import search
from triax.indexing.tables import Sources

pytest.importorskip("faiss")


@pytest.fixture(scope="module")
def corpus():
    """1,500 rows, each vector three times, from 200 chunks; groups of one to four queries."""
    random = np.random.default_rng(0)
    vectors = np.tile(random.normal(size=(500, 16)), (3, 1))
    vectors = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
    sources = Sources(np.arange(1501), random.integers(0, 200, 1500).astype(np.int32), 200)
    queries = random.normal(size=(20, 16)).astype(np.float32)
    queries /= np.linalg.norm(queries, axis=1, keepdims=True)
    groups = [queries[i : i + 1 + i % 4] for i in range(0, 20, 2)]
    return vectors, sources, groups


@pytest.mark.parametrize("depth", [None, 4])
def test_flat_faiss_agrees_with_jax(corpus, depth):
    vectors, sources, groups = corpus
    one, other = (
        search(vectors, sources, groups, 7, engine(vectors, sources), depth=depth)
        for engine in (FaissSearch, FlatSearch)
    )
    assert one == other
    assert all(len(walk.chunk_rows) == 7 for walk in one)


def test_lists_that_are_all_read_are_exact_and_one_list_of_many_is_near(corpus):
    vectors, sources, groups = corpus
    exact = search(vectors, sources, groups, 7, FaissSearch(vectors, sources))
    every = FaissSearch(vectors, sources, lists=10, probes=10)
    assert search(vectors, sources, groups, 7, every, depth=4) == exact
    few = FaissSearch(vectors, sources, lists=10, probes=1)
    found = search(vectors, sources, groups, 7, few, depth=4)
    again = FaissSearch(vectors, sources, lists=10, probes=1)
    assert found == search(vectors, sources, groups, 7, again, depth=4)
    shared = [len({*a.chunk_rows} & {*b.chunk_rows}) / 7 for a, b in zip(found, exact)]
    assert 0.2 < np.mean(shared) < 1


def test_r09_few_rows_and_none():
    sources = Sources.identity(2)
    vectors = np.eye(2, dtype=np.float32)
    query = [vectors[1:]]
    engine = FaissSearch(vectors, sources, lists=1)
    assert search(vectors, sources, query, 9, engine)[0].rows == (1,)
    none = FaissSearch(vectors[:0], Sources.identity(0))
    assert search(vectors[:0], Sources.identity(0), query, 9, none)[0].rows == ()
    with pytest.raises(ValueError, match="3 lists for 2 rows, expected 1 to 2"):
        FaissSearch(vectors, sources, lists=3)


def test_a_gpu_that_is_not_there_is_refused(monkeypatch):
    monkeypatch.setattr("faiss.get_num_gpus", lambda: 0)
    with pytest.raises(ValueError, match=r"faiss sees none; install triax\[gpu\]"):
        FaissSearch(np.eye(2, dtype=np.float32), Sources.identity(2), device="gpu")


def test_faiss_that_is_absent_or_there_twice_is_refused(monkeypatch):
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "faiss", None)
        with pytest.raises(ImportError, match=r"install triax\[cpu\] or triax\[gpu\]"):
            import_faiss()
    twice = {"faiss": ["faiss-gpu", "faiss-cpu", "faiss-cpu"]}
    monkeypatch.setattr(importlib.metadata, "packages_distributions", lambda: twice)
    with pytest.raises(ImportError, match=r"2 distributions .*faiss-cpu, faiss-gpu.*uninstall"):
        import_faiss()
