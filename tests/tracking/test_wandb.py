"""The files that W&B writes offline are read back with its own record definitions."""

import json
import os
import signal
import struct
import subprocess
import sys

import pytest

from triax.tracking.jsonl import JsonlTracker
from triax.tracking.wandb import WandbTracker

BLOCK, HEADER = 32768, 7


def records(path):
    """The records of a .wandb file: LevelDB's log format after a header of 7 bytes."""
    pb = pytest.importorskip("wandb.proto.wandb_internal_pb2")
    data, position, held = path.read_bytes(), HEADER, b""
    assert data[:4] == b":W&B"
    while position + HEADER <= len(data):
        left = BLOCK - position % BLOCK
        if left < HEADER:
            position += left
            continue
        _, length, kind = struct.unpack("<IHB", data[position : position + HEADER])
        position += HEADER
        held += data[position : position + length]
        position += length
        if kind in (1, 4):  # whole, or the last part
            record = pb.Record()
            record.ParseFromString(held)
            held = b""
            yield record


def items(found):
    values = {(item.key or "/".join(item.nested_key)): item.value_json for item in found}
    return {key: json.loads(text) for key, text in values.items()}


def read_newest(folder):
    """Id, configuration, rows and summary of the newest part of a run."""
    run, rows, summary = None, [], {}
    for record in records(sorted(folder.glob("wandb/offline-run-*/*.wandb"))[-1]):
        kind = record.WhichOneof("record_type")
        if kind == "run":
            run = record.run
        elif kind == "history":
            rows.append(items(record.history.item))
        elif kind == "summary":
            summary |= items(record.summary.update)
    own = [{key: row[key] for key in row if key[0] != "_" or key == "_step"} for row in rows]
    return run.run_id, items(run.config.update), own, summary


PROGRAM = """
import os, signal, sys
from triax.tracking.composite import open_trackers
from triax.tracking.wandb import WandbTracker

def offline(**given):
    return WandbTracker(project="p", mode="offline", **given)

first, last, kill = map(int, sys.argv[2:])
tracker = open_trackers(sys.argv[1], "n", {"task": {"rank": 8}}, [offline])
tracker.resume(first)
for step in range(first + 1, last + 1):
    tracker.log({"train/loss": 1 / step}, step)
    tracker.log({"dev/f1": step / 8}, step)
if kill:
    os.kill(os.getpid(), signal.SIGKILL)
tracker.summary({"best": 0.5})
tracker.finish()
"""


def start(folder, *numbers):
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(folder), *map(str, numbers)],
        capture_output=True,
        text=True,
        timeout=120,
        env=os.environ | {"HOME": str(folder), "WANDB_ERROR_REPORTING": "false"},
    )
    assert done.returncode in (0, -signal.SIGKILL), done.stderr[-2000:]


def test_a_killed_run_goes_on_under_its_id_and_is_whole(tmp_path):
    pytest.importorskip("wandb")
    start(tmp_path, 0, 4, 1)
    kept = json.loads((tmp_path / "wandb.json").read_text())["id"]
    # The checkpoint was after step 2: 3 and 4 are made again.
    start(tmp_path, 2, 5, 0)
    run, config, rows, summary = read_newest(tmp_path)
    assert run == kept
    assert config["task"] == {"rank": 8}
    assert rows == [
        {"_step": step, "train/loss": 1 / step, "dev/f1": step / 8} for step in (1, 2, 3, 4, 5)
    ]
    assert summary["best"] == 0.5


def test_numbers_that_json_lacks_are_not_handed_over_again(tmp_path, monkeypatch):
    seen = []

    class Run:
        def log(self, metrics, step):
            seen.append((step, metrics))

    class Fake:
        Settings = dict
        init = staticmethod(lambda **given: seen.append(given) or Run())

    monkeypatch.setitem(sys.modules, "wandb", Fake)
    JsonlTracker(tmp_path).log({"loss": float("nan"), "rate": 2.0}, 1)
    tracker = WandbTracker(tmp_path, name="n", config={}, entity="team", group="g")
    tracker.log({"rate": 3.0}, 2)
    assert (seen[0]["mode"], seen[0]["resume"], seen[0]["id"]) == ("online", "allow", tracker.id)
    assert (seen[0]["project"], seen[0]["entity"], seen[0]["group"]) == ("triax", "team", "g")
    assert seen[1:] == [(1, {"rate": 2.0}), (2, {"rate": 3.0})]


def test_a_missing_package_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "wandb", None)
    with pytest.raises(ImportError, match=r"pip install 'triax\[wandb\]'"):
        WandbTracker(tmp_path / "run", name="n", config={}, mode="offline")
    assert not (tmp_path / "run").exists()


def test_an_unknown_mode_is_named(tmp_path):
    with pytest.raises(ValueError, match=r"'disabled', expected one of \['online', 'offline'\]"):
        WandbTracker(tmp_path, name="n", config={}, mode="disabled")
