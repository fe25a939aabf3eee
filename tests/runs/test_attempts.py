import json
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from triax.runs.attempts import Attempt, Worker
from triax.runs.shards import write_plan


@pytest.fixture
def plan(tmp_path):
    return write_plan(tmp_path / "plan", [{"id": "a"}, {"id": "b"}], {}, 1)


def attempt_at(plan, number=0, text="one\n"):
    attempt = Attempt(plan, number, Worker.this())
    attempt.folder.mkdir(parents=True)
    (attempt.folder / "out.jsonl").write_text(text)
    return attempt


def test_a_worker_says_job_task_restart_host_and_process(monkeypatch):
    for name in [name for name in os.environ if name.startswith("SLURM")]:
        monkeypatch.delenv(name)
    worker = Worker.this()
    assert (worker.job, worker.restart, worker.process) == ("local", 0, os.getpid())
    monkeypatch.setenv("SLURM_JOB_ID", "14")
    monkeypatch.setenv("SLURM_RESTART_COUNT", "2")
    monkeypatch.setenv("SLURMD_NODENAME", "n2.a/b")
    worker = Worker.this()
    assert (worker.job, worker.restart, worker.host) == ("14", 2, "n2.a/b")
    monkeypatch.setenv("SLURM_ARRAY_JOB_ID", "12")
    monkeypatch.setenv("SLURM_ARRAY_TASK_ID", "3")
    worker = Worker.this()
    assert worker.job == "12_3"
    assert worker.name == f"12_3.r2.n2-a-b.{os.getpid()}.{worker.token}"
    assert Worker.this().name != worker.name


def test_what_is_published_is_whole_and_says_where_it_is_from(plan):
    attempt = attempt_at(plan)
    assert attempt.publish(["out.jsonl"], {"seconds": 1.5})
    assert plan.fault(0) == "" and plan.fault(1) == "missing"
    record = plan.record(0)
    assert record["seconds"] == 1.5 and record["made_by"]["token"] == attempt.worker.token
    # printf 'one\n' | sha256sum
    sha256 = "2c8b08da5ce60398e1f19af0e5dccc744df274b826abe585eaba68c525434806"
    assert record["files"] == {"out.jsonl": {"bytes": 4, "sha256": sha256}}
    assert not attempt.folder.exists()


def test_r30_the_second_gives_way_and_takes_its_files_along(plan):
    first, second = attempt_at(plan), attempt_at(plan, text="two\n")
    assert first.publish(["out.jsonl"], {})
    assert not second.publish(["out.jsonl"], {})
    assert (plan.finished(0) / "out.jsonl").read_text() == "one\n"
    assert plan.record(0)["made_by"]["token"] == first.worker.token
    assert list(plan.attempts(0).iterdir()) == []


def test_r30_of_many_at_once_one_wins(plan):
    attempts = [attempt_at(plan, text=f"{n}\n") for n in range(24)]
    with ThreadPoolExecutor(12) as pool:
        won = list(pool.map(lambda one: one.publish(["out.jsonl"], {}), attempts))
    assert sum(won) == 1 and plan.fault(0) == ""
    assert (plan.finished(0) / "out.jsonl").read_text() == f"{won.index(True)}\n"
    assert list(plan.attempts(0).iterdir()) == []


def test_whole_lines_of_others_are_copied_and_their_files_left(plan):
    other, own = attempt_at(plan), attempt_at(plan, text='{"id": "own"}\n')
    text = b'{"id": 1}\n\x00\x00\n[3]\n{"id": 2, "t": "\xc2\x85"}\n{"id": 3'
    (other.folder / "out.jsonl").write_bytes(text)
    assert own.left_by_others(["out.jsonl", "none.jsonl"]) == [{"id": 1}, {"id": 2, "t": "\x85"}]
    assert (other.folder / "out.jsonl").read_bytes() == text
    assert Attempt(plan, 1, Worker.this()).left_by_others(["out.jsonl"]) == []


def test_a_failed_attempt_says_why_and_keeps_its_files(plan):
    attempt = attempt_at(plan, text="{}\n")
    attempt.fail("no model")
    assert json.loads((attempt.folder / "failed.json").read_text()) == {"reason": "no model"}
    assert Attempt(plan, 0, Worker.this()).left_by_others(["out.jsonl"]) == [{}]
    assert plan.fault(0) == "missing"


def test_an_altered_result_goes_and_a_sound_one_stays(plan):
    attempt_at(plan).publish(["out.jsonl"], {})
    later = Attempt(plan, 0, Worker.this())
    later.withdraw()
    assert plan.fault(0) == ""
    (plan.finished(0) / "out.jsonl").write_text("eno\n")
    later.withdraw()
    assert plan.fault(0) == "missing"
    assert later.left_by_others(["out.jsonl"]) == []
    (aside,) = (plan.folder / "broken").iterdir()
    assert aside.name == f"000000.{later.worker.name}"
    assert attempt_at(plan).publish(["out.jsonl"], {})


def test_a_sound_result_that_is_to_be_made_better_is_copied_from(plan):
    attempt_at(plan, text='{"id": 1}\n').publish(["out.jsonl"], {})
    later = Attempt(plan, 0, Worker.this())
    later.withdraw(is_sound=True)
    later.withdraw(is_sound=True)
    assert plan.fault(0) == "missing"
    assert later.left_by_others(["out.jsonl"]) == [{"id": 1}]


def test_r30_a_sound_result_that_came_between_look_and_rename_goes_back(plan, monkeypatch):
    attempt_at(plan).publish(["out.jsonl"], {})
    whole = (plan.finished(0) / "out.jsonl").read_bytes()
    (plan.finished(0) / "out.jsonl").write_bytes(b"eno\n")
    rename = os.rename

    def late(source, target):
        if Path(source) == plan.finished(0):
            monkeypatch.setattr(os, "rename", rename)
            Attempt(plan, 0, Worker.this()).withdraw()
            assert attempt_at(plan).publish(["out.jsonl"], {})
        rename(source, target)

    monkeypatch.setattr(os, "rename", late)
    Attempt(plan, 0, Worker.this()).withdraw()
    assert plan.fault(0) == ""
    assert (plan.finished(0) / "out.jsonl").read_bytes() == whole


PUBLISH = """
import sys
from triax.runs.attempts import Attempt, Worker
from triax.runs.shards import open_plan
plan = open_plan(sys.argv[1])
while True:
    attempt = Attempt(plan, 0, Worker.this())
    attempt.withdraw(is_sound=True)
    attempt.folder.mkdir(parents=True)
    (attempt.folder / "out.jsonl").write_text("x" * 300_000)
    attempt.publish(["out.jsonl"], {})
    print("made", flush=True)
"""


def test_r05_killed_anywhere_a_result_is_whole_or_not_there(plan):
    for wait in (0.0, 0.003, 0.006, 0.01):
        command = [sys.executable, "-c", PUBLISH, str(plan.folder)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
            assert child.stdout.readline() == "made\n"
            time.sleep(wait)
            child.kill()
        assert child.returncode == -signal.SIGKILL
        assert plan.fault(0) in ("", "missing")
    Attempt(plan, 0, Worker.this()).withdraw(is_sound=True)
    assert attempt_at(plan).publish(["out.jsonl"], {})
