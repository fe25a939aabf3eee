import shutil
from dataclasses import replace

import numpy as np
import pytest
from random_index import draw_groups, draw_index

from triax.indexing.faiss_index import FaissSearch
from triax.indexing.faiss_plan import plan_shards
from triax.indexing.faiss_shards import build_shard, merge_shards, train
from triax.indexing.flat import FlatSearch
from triax.indexing.search import search
from triax.indexing.sharded_search import ShardedSearch
from triax.indexing.store import load_index, save_index

pytest.importorskip("faiss")


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    return draw_index(tmp_path_factory.mktemp("search") / "index")


def build(index, factory, shards=3, merges=False, **settings):
    plan = plan_shards(index.folder, factory, shards, **settings)
    train(plan)
    for number in range(shards):
        build_shard(plan, number)
    if merges:
        merge_shards(plan)
    return plan


def walks(index, engine, depth=4):
    return search(index.vectors, index.tables.sources, draw_groups(), 7, engine, depth=depth)


def opened(index, factory, shards=3, **settings):
    return ShardedSearch(index.vectors, index.tables.sources, factory, shards, **settings)


@pytest.fixture(scope="module")
def exact(index):
    """By JAX and by one flat index of faiss."""
    one, other = (
        walks(index, engine(index.vectors, index.tables.sources))
        for engine in (FlatSearch, FaissSearch)
    )
    assert one == other and all(len(walk.chunk_rows) == 7 for walk in one)
    return one


@pytest.mark.parametrize("shards", [1, 3, 40])
def test_flat_shards_are_exact(index, exact, shards):
    build(index, "Flat", shards)
    for depth in (None, 1, 4):
        assert walks(index, opened(index, "Flat", shards, rescored=1), depth) == exact


def test_lists_that_are_all_read_are_exact_in_shards_and_merged(index, exact):
    build(index, "IVF8,Flat", merges=True)
    for source in ("shards", "merged", "auto"):
        engine = opened(index, "IVF8,Flat", probes=99, rescored=1, source=source)
        assert walks(index, engine) == exact


@pytest.mark.parametrize(
    ("factory", "rescored"), [("IVF8,SQ8", 1), ("RR16,IVF8,PQ4x4", 2), ("IVF8_HNSW4,Flat", 1)]
)
def test_the_merged_file_finds_what_the_shards_find(index, factory, rescored):
    build(index, factory, merges=True)
    some = {"probes": 3, "rescored": rescored}
    shards = opened(index, factory, source="shards", **some)
    merged = opened(index, factory, source="merged", **some)
    groups = draw_groups()
    for depth in (4, 50, 600):
        for one, other in zip(shards.nearest(groups, depth), merged.nearest(groups, depth)):
            assert one[1] == other[1]
            # Equal codes have equal scores: which of them stands last is not told.
            assert len(set(one[0]) ^ set(other[0])) <= 0.2 * len(one[0]) + 2


def test_candidates_of_all_lists_and_all_depth_are_everything(index, exact):
    build(index, "IVF8,PQ4x4")
    engine = opened(index, "IVF8,PQ4x4", probes=8)
    for rows, bound in engine.nearest(draw_groups(), 600):
        assert rows.tolist() == list(range(600)) and bound == -np.inf
    assert walks(index, engine, 600) == exact


def recall(found, exact):
    return np.mean([len({*a.rows} & {*b.rows}) / len(b.rows) for a, b in zip(found, exact)])


def test_more_probes_and_more_candidates_find_more(index, exact):
    """SQ8 with all lists loses next to nothing; one list of eight loses much; PQ needs depth."""
    build(index, "IVF8,SQ8")
    build(index, "IVF8,PQ4x4")
    few, every = (
        recall(walks(index, opened(index, "IVF8,SQ8", probes=probes)), exact) for probes in (1, 8)
    )
    assert few < 0.8 < 0.99 < every
    shallow, deep = (
        recall(walks(index, opened(index, "IVF8,PQ4x4", probes=8, rescored=r), 16), exact)
        for r in (1, 16)
    )
    assert shallow < deep > 0.95


def test_clusters_far_apart_are_found_in_one_list(tmp_path):
    """By construction: rows lie tightly around 8 orthogonal axes, so a query's best are in one."""
    index = draw_index(tmp_path / "drawn")
    random = np.random.default_rng(0)
    axes = np.eye(16, dtype=np.float32)[np.arange(600) % 8]
    rows = axes + 0.02 * random.normal(size=(600, 16)).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    identity = {key: index.manifest[key] for key in ("schema", "encoder", "dtype", "role")}
    identity |= {key: index.manifest[key] for key in ("extractor", "embeds_chunks", "inputs")}
    save_index(tmp_path / "axes", index.tables, rows, None, identity)
    index = load_index(tmp_path / "axes")
    build(index, "IVF8,Flat", merges=True)
    engine = ShardedSearch(index.vectors, index.tables.sources, "IVF8,Flat", 3, probes=1)
    groups = [rows[i : i + 1] for i in range(8)]
    exact = np.argsort(-(rows[:8] @ rows.T), axis=1, kind="stable")[:, :40]
    for best, (found, _) in zip(exact, engine.nearest(groups, 10)):
        assert set(best) <= set(found.tolist()) and set(found % 8) == {best[0] % 8}


def test_a_folder_that_moved_is_searched_where_it_is(tmp_path):
    index = draw_index(tmp_path / "here" / "index")
    build(index, "IVF8,SQ8", merges=True)
    before = walks(index, opened(index, "IVF8,SQ8", source="merged"))
    (tmp_path / "here").rename(tmp_path / "there")
    index = load_index(tmp_path / "there" / "index")
    assert walks(index, opened(index, "IVF8,SQ8", source="merged")) == before


def test_a_folder_that_is_reached_through_a_link_is_the_same_folder(index, exact, tmp_path):
    (tmp_path / "link").symlink_to(index.folder)
    plan = build(replace(index, folder=tmp_path / "link"), "Flat", 2)
    assert plan == plan_shards(index.folder, "Flat", 2)
    again = load_index(tmp_path / "link")
    assert walks(again, opened(again, "Flat", 2, rescored=1)) == exact


def test_r28_wrong_vectors_are_refused(index, tmp_path):
    build(index, "Flat")
    with pytest.raises(ValueError, match="are in memory, expected those that load_index maps"):
        ShardedSearch(np.array(index.vectors), index.tables.sources, "Flat", 3)
    with pytest.raises(ValueError, match="300 x 16 vectors, expected all 600 x 16"):
        ShardedSearch(index.vectors[300:], index.tables.sources, "Flat", 3)
    other = draw_index(tmp_path / "index", seed=5)
    with pytest.raises(FileNotFoundError, match="3 of 3 shards are missing"):
        opened(other, "Flat")
    wrong = plan_shards(other.folder, "Flat", 3)
    shutil.copytree(plan_shards(index.folder, "Flat", 3).folder, wrong.folder)
    with pytest.raises(ValueError, match=r"something else \(vectors_sha256: .* there, .* given\)"):
        opened(other, "Flat")


def test_vectors_that_changed_under_the_shards_are_found_when_asked(tmp_path):
    index = draw_index(tmp_path / "index")
    build(index, "Flat")
    opened(index, "Flat", is_verified=True)
    path = index.folder / "vectors.npy"
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    with pytest.raises(ValueError, match="00002 was built from other vectors than rows 400 to 600"):
        opened(index, "Flat", is_verified=True)


def test_settings_and_missing_parts_are_said(index, tmp_path):
    with pytest.raises(ValueError, match="probes=0, rescored=4; expected at least 1"):
        opened(index, "Flat", probes=0)
    other = draw_index(tmp_path / "index")
    with pytest.raises(FileNotFoundError, match="merged is not built"):
        opened(other, "IVF8,Flat", source="merged")
    build(other, "IVF8,Flat")
    shutil.rmtree(plan_shards(other.folder, "IVF8,Flat", 3).part("shard-00001"))
    with pytest.raises(FileNotFoundError, match="1 of 3 shards are missing .*: shard-00001;"):
        opened(other, "IVF8,Flat")
