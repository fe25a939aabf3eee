import hashlib
import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from triax.runs.attempts import Attempt, Worker
from triax.runs.shards import (
    ShardError,
    ShardPlan,
    fault_of,
    open_plan,
    put_folder,
    write_plan,
)

ITEMS = [{"id": f"i{n}", "text": "é\n"} for n in range(7)]


def plan_in(folder: Path, items=ITEMS, shard_size=3, **inputs) -> ShardPlan:
    return write_plan(folder, items, {"extractor": "e"} | inputs, shard_size)


def finish(plan: ShardPlan, number: int, text: str = "result\n") -> None:
    attempt = Attempt(plan, number, Worker.this())
    attempt.folder.mkdir(parents=True)
    (attempt.folder / "out.txt").write_text(text)
    assert attempt.publish(["out.txt"], {})


def files(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def test_a_plan_says_which_items_are_in_which_shard(tmp_path):
    plan = plan_in(tmp_path / "plan")
    assert plan.num_shards == 3 and plan.inputs == {"extractor": "e"}
    assert [plan.items(n) for n in range(3)] == [ITEMS[:3], ITEMS[3:6], ITEMS[6:]]
    assert [plan.num_items(n) for n in range(3)] == [3, 3, 1]
    lines = (tmp_path / "plan" / "items" / "000002.jsonl").read_bytes()
    assert lines == '{"id": "i6", "text": "é\\n"}\n'.encode()
    assert plan.items_sha256(2) == hashlib.sha256(lines).hexdigest()
    assert open_plan(tmp_path / "plan") == plan
    assert [path.name for path in tmp_path.iterdir()] == ["plan"]


def test_planning_the_same_again_changes_nothing_and_keeps_what_is_finished(tmp_path):
    finish(plan_in(tmp_path / "plan"), 1)
    before = files(tmp_path / "plan")
    plan = plan_in(tmp_path / "plan")
    assert files(tmp_path / "plan") == before
    assert plan.faults() == {0: "missing", 2: "missing"}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"items": [*ITEMS[:6], {"id": "i6", "text": "other"}]}, r"\(other items\)"),
        ({"items": ITEMS[:6]}, "num_items: 7 there, 6 given; other items"),
        ({"shard_size": 4}, "shard_size: 3 there, 4 given"),
        ({"extractor": "f"}, r"\(extractor: 'e' there, 'f' given\)"),
        ({"model": "m"}, "model: None there, 'm' given"),
    ],
)
def test_r28_another_plan_is_refused_by_what_differs(tmp_path, change, message):
    plan_in(tmp_path / "plan")
    before = files(tmp_path / "plan")
    with pytest.raises(ShardError, match=f"planned from something else .*{message}"):
        plan_in(tmp_path / "plan", **change)
    assert files(tmp_path / "plan") == before


def test_what_is_no_plan_is_refused(tmp_path):
    with pytest.raises(ShardError, match="holds no plan; run .*plan_shards.py"):
        open_plan(tmp_path)
    with pytest.raises(ValueError, match="shard_size is 0"):
        plan_in(tmp_path / "plan", shard_size=0)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "file").touch()
    with pytest.raises(ShardError, match="holds no plan"):
        plan_in(tmp_path / "other")
    plan_in(tmp_path / "plan")
    path = tmp_path / "plan" / "manifest.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"schema": 0}))
    with pytest.raises(ShardError, match="schema 0, expected 1"):
        open_plan(tmp_path / "plan")


def test_r09_no_items_are_no_shards_and_complete(tmp_path):
    plan = plan_in(tmp_path / "plan", items=[])
    assert plan.num_shards == 0
    plan.require_complete()


def test_r30_planners_at_once_give_one_plan(tmp_path):
    with ThreadPoolExecutor(6) as pool:
        plans = list(pool.map(lambda _: plan_in(tmp_path / "plan"), range(12)))
    assert all(plan == plans[0] for plan in plans)
    assert [path.name for path in tmp_path.iterdir()] == ["plan"]


def test_altered_items_are_refused(tmp_path):
    plan = plan_in(tmp_path / "plan")
    path = tmp_path / "plan" / "items" / "000000.jsonl"
    path.write_bytes(path.read_bytes().replace(b"i1", b"i9"))
    with pytest.raises(ShardError, match="000000.jsonl has sha256 .*, planned was"):
        plan.items(0)
    path.unlink()
    with pytest.raises(ShardError, match="has sha256 None"):
        plan.items(0)


def test_completeness_names_every_shard_that_is_missing_or_altered(tmp_path):
    plan = plan_in(tmp_path / "plan", items=[{"id": str(n)} for n in range(6)], shard_size=1)
    with pytest.raises(ShardError, match="6 of 6 shards"):
        plan.require_complete()
    for number in range(6):
        finish(plan, number)
    plan.require_complete()
    assert plan.record(3)["shard"] == 3
    (plan.finished(0) / "out.txt").write_text("tlus\nre")  # as long as it was
    (plan.finished(1) / "out.txt").write_text("result")
    (plan.finished(2) / "done.json").write_text("{")
    (plan.finished(3) / "out.txt").unlink()
    done = json.loads((plan.finished(4) / "done.json").read_text())
    (plan.finished(4) / "done.json").write_text(json.dumps(done | {"items_sha256": "0"}))
    with pytest.raises(ShardError) as caught:
        plan.require_complete()
    said = str(caught.value)
    assert said.startswith("5 of 6 shards") and "shard 5" not in said
    assert "shard 0: out.txt was altered: sha256" in said
    assert "shard 1: out.txt has 6 bytes, expected 7" in said
    assert "shard 2: done.json cannot be read" in said
    assert "shard 3: out.txt is missing" in said
    assert "shard 4: made from other items than were planned" in said
    assert 0 not in plan.faults(is_verified=False)  # its size is right


def test_a_folder_goes_where_none_stands_and_nowhere_else(tmp_path):
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_text(name)
    assert put_folder(tmp_path / "one", tmp_path / "deep" / "place")
    assert not put_folder(tmp_path / "two", tmp_path / "deep" / "place")
    assert (tmp_path / "deep" / "place" / "file").read_text() == "one"
    assert (tmp_path / "two" / "file").read_text() == "two"
    # As a rename over NFS whose answer was lost: the source is gone, the place is taken.
    assert put_folder(tmp_path / "one", tmp_path / "deep" / "place")
    with pytest.raises(FileNotFoundError):
        put_folder(tmp_path / "one", tmp_path / "nowhere")
    (tmp_path / "file").touch()
    with pytest.raises(NotADirectoryError):
        put_folder(tmp_path / "two", tmp_path / "file")


@pytest.mark.parametrize("text", ["[]", "{}", '{"items_sha256": "a", "files": {"x": 3}}', "\x00"])
def test_a_done_file_that_is_none(tmp_path, text):
    (tmp_path / "done.json").write_text(text)
    (tmp_path / "x").touch()
    assert "cannot be read" in fault_of(tmp_path, "a")
    assert fault_of(tmp_path / "none", "a") == "missing"
