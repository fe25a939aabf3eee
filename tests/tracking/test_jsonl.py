import json
import math
import os
import signal
import subprocess
import sys

import pytest

from triax.tracking.jsonl import JsonlTracker
from triax.tracking.tracker import Artifact


def rows(folder):
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


def test_each_call_is_a_row(tmp_path):
    tracker = JsonlTracker(tmp_path / "run")
    tracker.log({"loss": 0.5, "count": 3.0}, 10)
    tracker.log({"dev/f1": 1.0}, 10)
    tracker.finish()
    assert rows(tmp_path / "run") == [
        {"step": 10, "loss": 0.5, "count": 3.0},
        {"step": 10, "dev/f1": 1.0},
    ]


def test_steps_after_the_checkpoint_are_dropped_once(tmp_path):
    first = JsonlTracker(tmp_path)
    for step in (10, 20, 30, 40):
        first.log({"loss": 1 / step}, step)
    second = JsonlTracker(str(tmp_path))
    second.resume(20)
    assert [row["step"] for row in rows(tmp_path)] == [10, 20]
    for step in (30, 40, 50):
        second.log({"loss": 2 / step}, step)
    assert [(row["step"], row["loss"]) for row in rows(tmp_path)] == [
        (10, 1 / 10),
        (20, 1 / 20),
        (30, 2 / 30),
        (40, 2 / 40),
        (50, 2 / 50),
    ]


def test_the_first_step_of_a_process_tells_where_it_goes_on(tmp_path):
    first = JsonlTracker(tmp_path)
    for step in (1, 2, 3):
        first.log({"loss": 1.0}, step)
    second = JsonlTracker(tmp_path)
    second.log({"loss": 2.0}, 2)
    second.log({"dev/f1": 0.5}, 2)
    assert rows(tmp_path) == [
        {"step": 1, "loss": 1.0},
        {"step": 2, "loss": 2.0},
        {"step": 2, "dev/f1": 0.5},
    ]


@pytest.mark.parametrize("torn", [b'{"step": 3, "lo', b'{"step": 3, "loss": 1.0}'])
def test_half_a_line_of_a_killed_process_is_dropped(tmp_path, torn):
    JsonlTracker(tmp_path).log({"loss": 1.0}, 2)
    with (tmp_path / "metrics.jsonl").open("ab") as stream:
        stream.write(torn)
    JsonlTracker(tmp_path).log({"loss": 3.0}, 4)
    assert rows(tmp_path) == [{"step": 2, "loss": 1.0}, {"step": 4, "loss": 3.0}]


def test_a_row_is_kept_through_a_kill(tmp_path):
    program = (
        "import os, sys\nfrom triax.tracking.jsonl import JsonlTracker\n"
        "JsonlTracker(sys.argv[1]).log({'loss': 1.5}, 7)\n"
        f"os.kill(os.getpid(), {int(signal.SIGKILL)})"
    )
    done = subprocess.run([sys.executable, "-c", program, str(tmp_path)], env=os.environ)
    assert done.returncode == -signal.SIGKILL
    assert rows(tmp_path) == [{"step": 7, "loss": 1.5}]


def test_what_is_not_finite_becomes_null(tmp_path):
    JsonlTracker(tmp_path).log({"loss": math.nan, "rate": math.inf, "ok": 1.0}, 1)
    assert rows(tmp_path) == [{"step": 1, "loss": None, "rate": None, "ok": 1.0}]


def test_summaries_are_joined(tmp_path):
    JsonlTracker(tmp_path).summary({"f1": 0.4, "steps": 10.0})
    JsonlTracker(tmp_path).summary({"f1": 0.5, "ece": math.nan})
    assert json.loads((tmp_path / "summary.json").read_text()) == {
        "f1": 0.5,
        "steps": 10.0,
        "ece": None,
    }


def test_a_table_is_a_file_of_its_name(tmp_path):
    tracker = JsonlTracker(tmp_path)
    tracker.table("dev/per question", [{"id": "old"}])
    tracker.table("dev/per question", [{"id": "q1", "em": 1.0}, {"id": "q2", "em": math.nan}])
    lines = (tmp_path / "table-dev-per-question.jsonl").read_text().splitlines()
    assert [json.loads(line) for line in lines] == [
        {"id": "q1", "em": 1.0},
        {"id": "q2", "em": None},
    ]


def test_lineage_has_the_newest_row_of_each_artifact(tmp_path):
    JsonlTracker(tmp_path).artifact(Artifact("answers-x", "answers", "01"))
    scores = Artifact("scores-x", "scores", "02", tmp_path, inputs={"answers-x": "03"})
    answers = Artifact("answers-x", "answers", "03", inputs={"corpus-x": "04"})
    tracker = JsonlTracker(tmp_path)
    for made in (scores, answers):
        tracker.artifact(made)
    lines = (tmp_path / "lineage.jsonl").read_text().splitlines()
    assert [json.loads(line) for line in lines] == [scores.to_json(), answers.to_json()]
