"""Offline runs reach a server: with a stand-in for `wandb`, and with a real server.

The server is openwandb, in an environment of its own since it is no part of Triax:
`python -m venv .venv/openwandb && .venv/openwandb/bin/pip install openwandb`.
"""

import json
import os
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import time
import urllib.request

import pytest
from running import ROOT

SCRIPT = ROOT / "slurm" / "sync_wandb.sh"
SERVER = ROOT / ".venv" / "openwandb" / "bin" / "openwandb"

# Does what `wandb sync` does as far as the script sees it.
STAND_IN = """#!/usr/bin/env bash
part=${@: -1}
echo "$@" >> "{log}"
case "$part" in
  *nokey*) echo "Error: No API key configured. Use \\`wandb login\\` to log in."; exit 1 ;;
  *refused*) echo "wandb: ERROR the server says no"; exit 0 ;;
  *hangs*) sleep 60 ;;
esac
touch "$part/run.wandb.synced"
"""


@pytest.fixture
def sync(tmp_path):
    """The script over tmp_path/runs; gives its exit code, output and what the stand-in was told."""
    tool = tmp_path / "venv" / "bin" / "wandb"
    tool.parent.mkdir(parents=True)
    tool.write_text(STAND_IN.replace("{log}", str(tmp_path / "log")))
    tool.chmod(0o755)
    (tmp_path / "site.env").write_text(f"TRIAX_VENV={tmp_path}/venv\n")
    (tmp_path / "runs").mkdir()
    env = os.environ | {"TRIAX_SITE": str(tmp_path / "site.env")}
    env |= {"TRIAX_RUNS": str(tmp_path / "runs")}

    def call(*arguments):
        (tmp_path / "log").write_text("")
        done = subprocess.run(
            ["bash", SCRIPT, *arguments],
            env=env,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=60,
        )
        parts = [line.rpartition("/")[2] for line in (tmp_path / "log").read_text().splitlines()]
        return done.returncode, done.stdout + done.stderr, parts

    call.env = env
    return call


def part(runs, place, name, is_finished=True, size=100, seconds_ago=1000):
    """A folder as W&B leaves it for one process."""
    folder = runs / place / "wandb" / f"offline-run-{name}"
    folder.mkdir(parents=True)
    file = folder / "run.wandb"
    file.write_bytes(b"x" * size)
    os.utime(file, (time.time() - seconds_ago,) * 2)
    if is_finished:
        (folder / "finished").touch()
    return folder


def test_the_script_is_clean():
    if not shutil.which("shellcheck"):
        pytest.skip("shellcheck is not installed")
    subprocess.run(["shellcheck", "-x", SCRIPT], check=True, cwd=ROOT)


def test_the_newest_part_of_each_run_is_sent_once_in_the_order_of_their_starts(tmp_path, sync):
    runs = tmp_path / "runs"
    part(runs, "answer/b", "20260102_000000-bbb")
    part(runs, "answer/a", "20260101_000000-aaa", is_finished=False)
    part(runs, "answer/a", "20260103_000000-aaa")
    # A node that was cut off wrote its part of the same run elsewhere.
    part(runs, "elsewhere", "20260102_120000-aaa")
    part(runs, "train/solver/c", "20260101_000001-ccc")
    code, said, parts = sync()
    assert code == 0 and "3 sent, 0 still running, 0 failed" in said
    assert parts == [
        "offline-run-20260101_000001-ccc",
        "offline-run-20260102_000000-bbb",
        "offline-run-20260103_000000-aaa",
    ]
    assert sync()[2] == []
    # It was taken up again: what is new is sent, and of the old no part comes to life.
    part(runs, "answer/b", "20260104_000000-bbb")
    (runs / "train/solver/c/wandb/offline-run-20260101_000001-ccc/run.wandb").write_bytes(b"y" * 9)
    assert sync()[2] == ["offline-run-20260101_000001-ccc", "offline-run-20260104_000000-bbb"]
    assert not (tmp_path / "wandb").exists()


def test_a_part_that_holds_nothing_gives_way_to_the_one_before(tmp_path, sync):
    runs = tmp_path / "runs"
    part(runs, "a", "20260101_000000-aaa", is_finished=False)
    part(runs, "a", "20260102_000000-aaa", is_finished=False, size=7)
    part(runs, "b", "20260102_000000-bbb", is_finished=False, size=7)
    assert sync()[2] == ["offline-run-20260101_000000-aaa"]


def test_a_run_that_is_written_waits(tmp_path, sync):
    runs = tmp_path / "runs"
    live = part(runs, "a", "20260101_000000-aaa", is_finished=False, seconds_ago=20)
    code, said, parts = sync()
    assert (code, parts) == (0, []) and "0 sent, 1 still running" in said
    assert sync("--idle", "10")[2] == [live.name]
    (live / "run.wandb").write_bytes(b"more")
    (live / "run.wandb").write_bytes(b"more" * 9)
    assert sync()[2] == []
    (live / "finished").touch()
    assert sync()[2] == [live.name]


def test_only_what_is_below_the_folder_is_sent(tmp_path, sync):
    part(tmp_path / "runs", "answer/a", "20260101_000000-aaa")
    part(tmp_path / "runs", "train/b", "20260101_000000-bbb")
    assert sync(str(tmp_path / "runs" / "train"))[2] == ["offline-run-20260101_000000-bbb"]


def test_without_a_key_it_stops_and_says_so(tmp_path, sync):
    part(tmp_path / "runs", "a", "20260101_000000-nokey")
    part(tmp_path / "runs", "b", "20260102_000000-bbb")
    code, said, parts = sync()
    assert (code, len(parts)) == (2, 1)
    assert "wandb login" in said and "WANDB_API_KEY" in said


def test_a_run_that_cannot_be_sent_leaves_the_others(tmp_path, sync):
    """`wandb sync` ends with 0 there: only what it marked was sent."""
    runs = tmp_path / "runs"
    part(runs, "a", "20260101_000000-refused")
    part(runs, "b", "20260102_000000-hangs")
    part(runs, "c", "20260103_000000-ccc")
    code, said, parts = sync("--timeout", "1")
    assert (code, len(parts)) == (1, 3)
    assert "1 sent, 0 still running, 2 failed" in said and "the server says no" in said
    assert [one.rpartition("-")[2] for one in sync("--timeout", "1")[2]] == ["refused", "hangs"]


@pytest.mark.parametrize(
    "arguments, word",
    [
        (["--watch"], "--watch takes a number of seconds, found ''"),
        (["--idle", "soon"], "found 'soon'"),
        (["--live"], "unknown option --live"),
        (["gone"], "no folder gone"),
    ],
)
def test_it_says_how_it_is_asked(sync, arguments, word):
    code, said, parts = sync(*arguments)
    assert (code, parts) == (2, []) and word in said


def test_watching_sends_what_comes_later(tmp_path, sync):
    watching = subprocess.Popen(
        ["bash", SCRIPT, "--watch", "1"], env=sync.env, stdout=subprocess.PIPE, text=True
    )
    try:
        assert watching.stdout.readline() == "0 sent, 0 still running, 0 failed\n"
        part(tmp_path / "runs", "a", "20260101_000000-aaa")
        for line in watching.stdout:
            if line.startswith("sent"):
                break
        assert line.endswith("offline-run-20260101_000000-aaa\n")
    finally:
        watching.send_signal(signal.SIGTERM)
        watching.wait(10)
        watching.stdout.close()


@pytest.fixture
def server(tmp_path):
    """A W&B server of its own: (address, its data base)."""
    if not SERVER.exists():
        pytest.skip(f"openwandb is not installed in {SERVER.parent.parent} (see above)")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    data = tmp_path / "server"
    command = [SERVER, "serve", "--port", str(port), "--host", "127.0.0.1", "--data-dir", data]
    with (tmp_path / "server.log").open("w") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        address = f"http://127.0.0.1:{port}"
        for _ in range(300):
            try:
                urllib.request.urlopen(address, timeout=5).close()
                break
            except OSError:
                assert process.poll() is None, (tmp_path / "server.log").read_text()
                time.sleep(0.2)
        yield address, data / "openwandb.db"
    finally:
        process.terminate()
        process.wait(30)


TRACKED = """
import os, signal, sys
from pathlib import Path
from triax.tracking.composite import open_trackers
from triax.tracking.tracker import Artifact
from triax.tracking.wandb import WandbTracker

def other(**given):
    return WandbTracker(mode=sys.argv[2], **given)

folder, first, last, is_killed = Path(sys.argv[1]), *map(int, sys.argv[3:])
facts = {"study": "s", "job_type": "train_router", "tags": ("corpus:demo",)}
tracker = open_trackers(folder, folder.name, {"seed": 3}, [other], **facts)
assert tracker.trackers[-1].mode == sys.argv[2]
tracker.resume(first)
for step in range(first + 1, last + 1):
    tracker.log({"train/loss": 1 / step}, step)
if is_killed:
    os.kill(os.getpid(), signal.SIGKILL)
tracker.summary({"dev/f1": 0.75})
tracker.table("validation", [{"id": "q1", "em": 1.0}, {"id": "q2", "em": 0.0}])
(folder / "weights.txt").write_text("w")
for name, inputs in (("corpus-demo", {}), ("weights-ab", {"corpus-demo": "0" * 64})):
    digest = "0" * 64 if name == "corpus-demo" else "ab" * 32
    files = ("weights.txt",) if inputs else ()
    tracker.artifact(Artifact(name, name[:6], digest, folder, files, {"n": 1}, inputs))
tracker.finish()
"""


def track(home, folder, mode, first, last, is_killed=False, **environment):
    done = subprocess.run(
        [sys.executable, "-c", TRACKED, folder, mode, str(first), str(last), str(int(is_killed))],
        env=os.environ | {"HOME": str(home), "WANDB_ERROR_REPORTING": "false"} | environment,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == (-signal.SIGKILL if is_killed else 0), done.stderr[-3000:]


def test_a_server_shows_what_was_tracked(tmp_path, server):
    """A requeued offline run and an online one, which must come to the same."""
    pytest.importorskip("wandb")
    address, data = server
    key = {"WANDB_BASE_URL": address, "WANDB_API_KEY": "local" + "0" * 40}
    runs = tmp_path / "runs"
    track(tmp_path, runs / "requeued", "offline", 0, 4, is_killed=True)
    track(tmp_path, runs / "requeued", "offline", 2, 6)
    track(tmp_path, runs / "direct", "online", 0, 6, **key)
    site = tmp_path / "site.env"
    site.write_text(f"TRIAX_VENV={sys.prefix}\n")
    sync = ["bash", SCRIPT, "--idle", "0", str(runs)]
    env = os.environ | key | {"TRIAX_SITE": str(site), "HOME": str(tmp_path)}
    done = subprocess.run(sync, env=env, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0 and "1 sent, 0 still running" in done.stdout, done.stderr
    again = subprocess.run(sync, env=env, capture_output=True, text=True, timeout=120)
    assert "0 sent" in again.stdout
    with sqlite3.connect(data) as base:
        rows = base.execute(
            "select run_id, display_name, state, config_json, summary_json, tags_json from runs"
        ).fetchall()
        found = {name: (i, state, *map(json.loads, rest)) for i, name, state, *rest in rows}
        assert set(found) == {"requeued", "direct"}
        for name, (run_id, state, config, summary, tags) in found.items():
            kept = json.loads((runs / name / "wandb.json").read_text())["train_router"]
            assert (run_id, state, tags) == (kept, "finished", ["corpus:demo"])
            assert config["seed"]["value"] == 3 and summary["dev/f1"] == 0.75
            losses = base.execute(
                "select step, value from metrics where run_id = ? and key = 'train/loss'", [run_id]
            )
            assert sorted(losses) == [(step, pytest.approx(1 / step)) for step in range(1, 7)]
            files = base.execute("select name from files where run_id = ?", [run_id])
            assert any("validation" in one for (one,) in files)
            made = base.execute("select name from artifacts where run_id = ?", [run_id])
            assert {"corpus-demo", "weights-ab"} <= {one for (one,) in made}
