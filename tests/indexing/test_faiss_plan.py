import json

import numpy as np
import pytest
from random_index import draw_index

from triax.indexing.faiss_plan import (
    lists_of,
    make_index,
    plan_shards,
    read_part,
    train_index,
    write_plan,
)
from triax.indexing.faiss_shards import train

pytest.importorskip("faiss")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return draw_index(tmp_path_factory.mktemp("plan") / "index").folder


@pytest.mark.parametrize("shards", [1, 7, 600])
def test_ranges_cover_every_row_once_and_are_equal_up_to_one(folder, shards):
    plan = plan_shards(folder, "Flat", shards)
    ranges = [plan.range_of(number) for number in range(shards)]
    assert [row for start, end in ranges for row in range(start, end)] == list(range(600))
    sizes = {end - start for start, end in ranges}
    assert max(sizes) - min(sizes) <= 1


def test_r28_another_plan_is_another_folder_and_the_place_is_none_of_it(folder, tmp_path):
    plan = plan_shards(folder, "IVF4,SQ8", 2)
    others = [
        plan_shards(folder, "IVF4,Flat", 2),
        plan_shards(folder, "IVF4,SQ8", 3),
        plan_shards(folder, "IVF4,SQ8", 2, sample=100),
        plan_shards(folder, "IVF4,SQ8", 2, seed=1),
        plan_shards(draw_index(tmp_path / "index", seed=5).folder, "IVF4,SQ8", 2),
    ]
    assert len({plan.folder.name, *(other.folder.name for other in others)}) == 6
    copied = plan_shards(draw_index(tmp_path / "copy").folder, "IVF4,SQ8", 2)
    assert copied.folder.name == plan.folder.name and copied.folder != plan.folder
    write_plan(plan)
    kept = json.loads((plan.folder / "plan.json").read_text())
    assert kept["encoder"] == {"name": "drawn", "dimension": 16} and kept["rows"] == 600
    assert str(folder) not in json.dumps(kept)


def test_the_sample_is_64_a_list_and_no_more_than_there_is(folder):
    assert plan_shards(folder, "IVF4,SQ8").sample == 600
    assert plan_shards(folder, "IVF4,SQ8", sample=50).sample == 50


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("Falt",), r"by factory 'Falt' .*expected such as Flat, IVF4096,SQ8"),
        (("PQ5",), "16 dimensions by factory 'PQ5'"),
        (("HNSW8",), "'HNSW8' has no inverted lists"),
        (("Flat", 601), "601 shards of 600 rows .*expected 1 to 600"),
        (("Flat", 0), "0 shards of 600 rows"),
        (("Flat", 1, None, 0, "chunk_vectors.npy"), r"no chunk_vectors.npy.*\['vectors.npy'\]"),
    ],
)
def test_what_cannot_be_planned_is_refused(folder, arguments, message):
    with pytest.raises(ValueError, match=message):
        plan_shards(folder, *arguments)
    with pytest.raises(FileNotFoundError, match="expected an index"):
        plan_shards(folder.parent / "nowhere", "Flat")


def test_too_small_a_sample_is_refused_and_a_small_one_said(caplog):
    vectors = np.random.default_rng(0).normal(size=(20, 16)).astype(np.float32)
    with pytest.raises(ValueError, match=r"trained on 20 rows .*take a larger sample"):
        train_index(make_index("IVF32,Flat", 16), vectors, 0)
    train_index(make_index("IVF4,Flat", 16), vectors, 0)
    assert "20 rows for 4 lists; faiss recommends 156 or more" in caplog.text


def test_the_seed_is_that_of_the_training_of_lists_and_of_codes():
    faiss = pytest.importorskip("faiss")
    vectors = np.random.default_rng(0).normal(size=(300, 16)).astype(np.float32)

    def trained(seed):
        index = make_index("RR16,IVF4,PQ2x4", 16)
        train_index(index, vectors, seed)
        inner = lists_of(index)
        assert (inner.cp.seed, inner.pq.cp.seed) == (seed, seed)
        assert not inner.do_polysemous_training
        return faiss.serialize_index(index).tobytes()

    assert trained(3) == trained(3) != trained(4)


def test_a_part_that_is_cut_altered_or_of_another_plan_is_refused(folder):
    plan = plan_shards(folder, "IVF4,Flat", 3, seed=9)
    with pytest.raises(FileNotFoundError, match="trained is not built"):
        read_part(plan, "trained")
    assert train(plan) == read_part(plan, "trained", is_verified=True)
    path = plan.part("trained") / "index.faiss"
    whole = path.read_bytes()
    path.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    read_part(plan, "trained")
    with pytest.raises(ValueError, match=r"index.faiss was altered.*delete that folder"):
        read_part(plan, "trained", is_verified=True)
    path.write_bytes(whole[:-1])
    with pytest.raises(ValueError, match=f"has {len(whole) - 1} bytes, expected {len(whole)}"):
        read_part(plan, "trained")
    path.write_bytes(whole)
    other = plan_shards(folder, "IVF4,Flat", 3, seed=8)
    plan.part("trained").rename(other.folder)  # a wrong copy
    other.folder.rename(other.folder.with_name("kept"))
    other.folder.mkdir()
    (other.folder.with_name("kept")).rename(other.part("trained"))
    with pytest.raises(ValueError, match=r"made from something else \(seed: 9 there, 8 given\)"):
        read_part(other, "trained")
