import os
import time
from dataclasses import replace

import pytest

from triax.runs.attempts import Worker
from triax.runs.statuses import (
    SILENCE_S,
    JobStatus,
    age,
    is_held,
    load,
    load_all,
    save,
    status_path,
)

WORKER = Worker("7_2", 0, "n1", 12, "aaaaaa")
RUNNING = JobStatus("x-k1", "running", WORKER, "answer")


def test_a_status_is_read_as_it_was_written(tmp_path):
    assert load(tmp_path, "x-k1") is None and load_all(tmp_path) == {}
    save(tmp_path, RUNNING)
    other = replace(RUNNING, name="y", state="failed", exit_code=1, said="a\nerror: no reader\n")
    save(tmp_path, other)
    assert load_all(tmp_path) == {"x-k1": RUNNING, "y": other}
    assert other.told() == "failed: answer ended with 1 in job 7_2 on n1: error: no reader"
    again = replace(RUNNING, attempt=replace(WORKER, restart=1), seconds=61.0)
    assert again.told() == "running: answer in job 7_2 on n1 (start 2), 61 s"


def test_a_status_that_nobody_renews_is_of_a_process_that_is_gone(tmp_path):
    save(tmp_path, RUNNING)
    path = status_path(tmp_path, "x-k1")
    assert -1 < age(path) < SILENCE_S
    then = time.time() - SILENCE_S - 5
    os.utime(path, (then, then))
    assert load(tmp_path, "x-k1") == replace(RUNNING, state="stopped")
    save(tmp_path, replace(RUNNING, state="finished"))
    os.utime(path, (then, then))
    assert load(tmp_path, "x-k1").state == "finished"


def test_what_is_no_status(tmp_path):
    path = status_path(tmp_path, "x")
    path.parent.mkdir()
    path.write_text("{}")
    with pytest.raises(ValueError, match=r"x.json is no status"):
        load(tmp_path, "x")


@pytest.mark.parametrize(
    ("other", "held"),
    [
        (WORKER, False),
        (replace(WORKER, job="8_2"), True),
        (replace(WORKER, process=13, token="b"), True),
        # The same job of Slurm was requeued: what it was before is dead.
        (replace(WORKER, restart=1, host="n2", token="b"), False),
        (replace(WORKER, job="local", restart=1), True),
    ],
)
def test_who_runs_a_job(other, held):
    assert is_held(RUNNING, other) == held
    assert not is_held(replace(RUNNING, state="stopped"), other)
