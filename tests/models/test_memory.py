import logging
import os
from types import SimpleNamespace

import jax
import numpy as np
import pytest

from triax.indexing.flat import FlatSearch
from triax.indexing.tables import Sources
from triax.models import memory
from triax.models.memory import (
    DeviceMemoryError,
    Memory,
    amount,
    device_memory,
    graph_memory,
    index_memory,
    report,
)
from triax.models.mesh import open_mesh
from triax.retrieval.pagerank import PageRank

GB = 1024**3


def test_amounts():
    assert [amount(n) for n in (0, 1023, 1536, 5 * GB, 3000 * GB)] == [
        "0 B",
        "1023 B",
        "1.5 KB",
        "5.0 GB",
        "3000.0 GB",
    ]
    said = str(Memory({"weights": 2 * GB}, {"activations": GB}))
    assert said == "3.0 GB (weights 2.0 GB, activations up to 1.0 GB)"


def test_vectors_are_counted_as_they_are_held():
    vectors = np.random.default_rng(0).standard_normal((300, 24)).astype(np.float16)
    engine = FlatSearch(vectors, Sources.identity(300), open_mesh(devices=jax.devices()[:1]), 64)
    held = engine._vectors
    padded = (held.shape[0] * held.shape[1], 24)
    assert index_memory(padded, held.dtype, 1, 64, 8).exact == {"vectors": held.nbytes}
    assert index_memory((512, 24), np.float16, 8, 64, 8).exact["vectors"] == 64 * 24 * 2


@pytest.mark.parametrize("degree", [2, 12])
def test_edges_are_bounded_by_ten_bytes(degree):
    random = np.random.default_rng(0)
    pairs = {tuple(sorted(pair)) for pair in random.integers(0, 3000, (1500 * degree, 2)).tolist()}
    ends = np.array([pair for pair in pairs if pair[0] != pair[1]])
    sources, targets = np.concatenate([ends, ends[:, ::-1]]).T
    graph = PageRank(sources, targets, np.ones(len(sources)), 3000)
    bound = graph_memory(len(sources), 3000, 1).rough["edges"]
    assert graph.edge_bytes <= bound <= 2 * graph.edge_bytes


def on(platform, limit):
    device = SimpleNamespace(platform=platform, memory_stats=lambda: {"bytes_limit": limit})
    return SimpleNamespace(local_devices=[device], size=2)


def test_what_fits_is_only_told(caplog):
    with caplog.at_level(logging.INFO, memory.__name__):
        report("a search", Memory({"vectors": GB}), on("gpu", 2 * GB))
    assert caplog.messages == ["a search: 1.0 GB (vectors 1.0 GB) of 2.0 GB on each of 2 device(s)"]


@pytest.mark.parametrize(
    ("platform", "exact", "rough"), [("gpu", GB, 3 * GB), ("cpu", 3 * GB, 0), ("cpu", 0, 3 * GB)]
)
def test_what_may_not_fit_is_warned_of(caplog, platform, exact, rough):
    report("it", Memory({"weights": exact}, {"activations": rough}), on(platform, 2 * GB))
    assert "may need more memory than a device has" in caplog.text
    assert "mesh.model" in caplog.text


def test_what_cannot_fit_is_refused():
    with pytest.raises(DeviceMemoryError, match=r"must hold 3.0 GB .* has 2.0 GB; take smaller"):
        report("it", Memory({"weights": 3 * GB}), on("gpu", 2 * GB))


def test_the_devices_of_a_cpu_share_its_memory():
    whole = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    assert device_memory(jax.devices("cpu")[0]) == whole // jax.local_device_count("cpu")
    unknown = SimpleNamespace(platform="tpu", memory_stats=lambda: None)
    assert device_memory(unknown) is None
