import hashlib
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace

import numpy as np
import pytest
from random_index import draw_index

from triax.indexing.faiss_plan import lists_of, plan_shards, read_part, shard_name
from triax.indexing.faiss_shards import (
    build_shard,
    check_training,
    hash_rows,
    merge_shards,
    sample_rows,
    train,
)

faiss = pytest.importorskip("faiss")


@pytest.fixture
def index(tmp_path):
    return draw_index(tmp_path / "index")


def build_all(plan):
    train(plan)
    return [build_shard(plan, number) for number in range(plan.shards)]


def contents(part):
    """Of each list its ids and codes."""
    index = faiss.read_index(str(part / "index.faiss"), faiss.IO_FLAG_ONDISK_SAME_DIR)
    lists = lists_of(index).invlists
    return [
        sorted(
            zip(
                faiss.rev_swig_ptr(lists.get_ids(i), lists.list_size(i)).tolist(),
                map(bytes, faiss.rev_swig_ptr(
                    lists.get_codes(i), lists.list_size(i) * lists.code_size
                ).reshape(-1, lists.code_size).copy()) if lists.list_size(i) else [],
            )
        )
        for i in range(lists.nlist)
    ]  # fmt: skip


@pytest.mark.parametrize("factory", ["IVF6,Flat", "IVF6,SQ8", "RR16,IVF6,PQ4x4", "IVF6_HNSW4,SQ8"])
def test_a_row_has_one_code_whether_it_came_alone_in_a_shard_or_merged(index, factory):
    """Against one index of faiss that gets all rows at once, from the same training."""
    plan = plan_shards(index.folder, factory, 4)
    manifests = build_all(plan)
    assert [one["rows"] for one in manifests] == [[0, 150], [150, 300], [300, 450], [450, 600]]
    merged = merge_shards(plan)
    assert merged["count"] == 600 and set(merged["files"]) == {"index.faiss", "lists.ivfdata"}
    whole = faiss.read_index(str(plan.part("trained") / "index.faiss"))
    whole.add(np.asarray(index.vectors))
    reference = plan.part("reference")
    reference.mkdir()
    faiss.write_index(whole, str(reference / "index.faiss"))
    assert contents(plan.part("merged")) == contents(reference)
    parts = [contents(plan.part(shard_name(number))) for number in range(4)]
    assert [sorted(sum(some, [])) for some in zip(*parts)] == contents(reference)


def test_r18_two_builds_give_the_same_bytes(index):
    plan = plan_shards(index.folder, "IVF6,PQ4x4", 3, sample=300, seed=7)
    first = [train(plan)["files"]] + [one["files"] for one in build_all(plan)]
    shutil.rmtree(plan.folder)
    assert [train(plan)["files"]] + [one["files"] for one in build_all(plan)] == first


def test_the_sample_is_drawn_by_its_seed(index):
    plan = plan_shards(index.folder, "IVF6,Flat", sample=300, seed=7)
    rows = sample_rows(plan)
    assert len(set(rows.tolist())) == 300 and (np.diff(rows) > 0).all() and rows[-1] < 600
    assert rows.tolist() == sample_rows(plan).tolist()
    assert rows.tolist() != sample_rows(replace(plan, seed=8)).tolist()
    assert sample_rows(replace(plan, sample=600)).tolist() == list(range(600))


def test_a_manifest_says_what_the_shard_was_made_from(tmp_path):
    index = draw_index(tmp_path / "index", dtype="float16")
    plan = plan_shards(index.folder, "IVF6,SQ8", 2)
    seen = []
    train(plan)
    manifest = build_shard(plan, 1, seen.append)
    assert (manifest["rows"], manifest["count"], seen) == ([300, 600], 300, [300])
    raw = (index.folder / "vectors.npy").read_bytes()[-300 * 16 * 2 :]
    assert manifest["vectors_sha256"] == hashlib.sha256(raw).hexdigest()
    assert hash_rows(index.vectors, 300, 600) == manifest["vectors_sha256"]
    assert manifest["plan"]["dtype"] == "float16"
    assert manifest["plan"]["encoder"] == {"name": "drawn", "dimension": 16}
    with pytest.raises(ValueError, match="shard 2 of 2; expected 0 to 1"):
        build_shard(plan, 2)


def test_what_is_done_is_not_done_again(index, monkeypatch):
    plan = plan_shards(index.folder, "IVF6,SQ8", 2)
    build_all(plan)
    merge_shards(plan)
    monkeypatch.setattr(faiss, "write_index", None)
    assert len(build_all(plan)) == 2 and merge_shards(plan)["count"] == 600


def test_stages_out_of_order_say_what_comes_first(index):
    plan = plan_shards(index.folder, "IVF6,SQ8", 4)
    with pytest.raises(FileNotFoundError, match=r"trained is not built; run `python eval/index_s"):
        build_shard(plan, 0)
    train(plan)
    build_shard(plan, 2)
    with pytest.raises(FileNotFoundError, match=r"3 of 4 shards are missing .*00000, .*1, .*00003"):
        merge_shards(plan)
    with pytest.raises(ValueError, match="flat shards have nothing to merge"):
        merge_shards(plan_shards(index.folder, "Flat", 4))


def test_r04_a_killed_build_leaves_no_half_part_and_merging_clears_the_rest(index):
    """The process is killed after the file is written, before it is renamed into place."""
    plan = plan_shards(index.folder, "IVF6,Flat", 2)
    train(plan)
    program = (
        "import os, time\nfrom triax.indexing import faiss_plan, faiss_shards\n"
        "faiss_shards.put_folder = lambda *_: (print('written', flush=True), time.sleep(60))\n"
        f"plan = faiss_plan.plan_shards({str(index.folder)!r}, 'IVF6,Flat', 2)\n"
        "faiss_shards.build_shard(plan, 0)\n"
    )
    process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "written\n"
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert plan.missing() == ["shard-00000", "shard-00001"]
    assert len(list(plan.folder.glob(".shard-00000.*/index.faiss"))) == 1
    build_all(plan)
    merge_shards(plan)
    left = sorted(path.name for path in plan.folder.iterdir())
    assert left == ["merged", "plan.json", "shard-00000", "shard-00001", "trained"]


def test_a_build_that_fails_leaves_nothing(index, monkeypatch):
    plan = plan_shards(index.folder, "IVF6,Flat", 2)
    train(plan)

    def full(index, path):
        open(path, "wb").close()
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(faiss, "write_index", full)
    with pytest.raises(OSError, match="No space"):
        build_shard(plan, 0)
    assert sorted(path.name for path in plan.folder.iterdir()) == ["plan.json", "trained"]


def test_r30_the_second_of_two_builders_keeps_the_part_of_the_first(index, monkeypatch):
    plan = plan_shards(index.folder, "IVF6,Flat", 2)
    train(plan)
    write = faiss.write_index

    def slow(built, path):
        monkeypatch.setattr(faiss, "write_index", write)
        build_shard(plan, 0)  # another one is done while this one writes
        time.sleep(0.01)
        os.utime(plan.part("shard-00000") / "manifest.json", (1, 1))
        write(built, path)

    monkeypatch.setattr(faiss, "write_index", slow)
    build_shard(plan, 0)
    assert (plan.part("shard-00000") / "manifest.json").stat().st_mtime == 1
    assert not list(plan.folder.glob(".shard-*"))


def test_shards_of_another_training_are_not_merged(index):
    plan = plan_shards(index.folder, "IVF6,Flat", 2, sample=300)
    build_all(plan)
    shutil.rmtree(plan.part("trained"))
    faiss_index = faiss.index_factory(16, "IVF6,Flat", faiss.METRIC_INNER_PRODUCT)
    faiss_index.train(np.asarray(index.vectors))
    train(plan)  # the same bytes again: they still belong together
    check_training(plan, ["shard-00000", "shard-00001"])
    path = plan.part("trained") / "index.faiss"
    faiss.write_index(faiss_index, str(path))
    manifest = plan.part("trained") / "manifest.json"
    text = manifest.read_text()
    old = read_part(plan, "trained")["files"]["index.faiss"]["sha256"]
    manifest.write_text(text.replace(old, hashlib.sha256(path.read_bytes()).hexdigest()))
    with pytest.raises(ValueError, match=f"was built from the training {old[:12]}, expected"):
        merge_shards(plan)


def test_an_altered_shard_is_not_merged(index):
    plan = plan_shards(index.folder, "IVF6,Flat", 2)
    build_all(plan)
    path = plan.part("shard-00001") / "index.faiss"
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"shard-00001/index.faiss was altered"):
        merge_shards(plan)


def test_a_place_that_holds_something_else_is_not_overwritten(index):
    plan = plan_shards(index.folder, "Flat", 2)
    (plan.part("trained") / "mine").mkdir(parents=True)
    with pytest.raises(FileExistsError, match="trained holds something without manifest.json"):
        train(plan)
