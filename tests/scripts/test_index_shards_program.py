"""FAISS shards of an index folder by the program and by the job script, without Slurm."""

import json
import os
import subprocess
import sys

import pytest
from running import ROOT, run

sys.path.insert(0, str(ROOT / "tests" / "indexing"))

from random_index import draw_index

pytest.importorskip("faiss")


@pytest.fixture
def home(tmp_path):
    return {"HOME": str(tmp_path)}


def last(done):
    """What the program says; faiss writes lines of its own."""
    return json.loads([line for line in done.stdout.splitlines() if line.startswith("{")][-1])


def test_stages_in_turn_each_done_once(home, tmp_path):
    index = draw_index(tmp_path / "index")
    settings = [f"index_folder={index.folder}", "index.factory='IVF6,SQ8'", "index.shards=5"]

    def stage(*more, check=True):
        return run(home, "eval", "index_shards", *settings, *more, check=check)

    early = stage("stage=build", "shard=0", check=False)
    assert early.returncode == 1 and "trained is not built; run `python eval" in early.stderr
    trained = last(stage("stage=train"))
    assert trained["trained on"] == 600
    half = last(stage("stage=build", "worker=1", "num_workers=2"))
    assert half["shards"] == [1, 3] and half["of"] == 5
    refused = stage("stage=merge", check=False)
    assert refused.returncode == 1 and "Traceback" not in refused.stderr
    assert "3 of 5 shards are missing" in refused.stderr
    assert "shard-00000, shard-00002, shard-00004" in refused.stderr
    assert last(stage("stage=build"))["shards"] == [0, 1, 2, 3, 4]
    merged = last(stage("stage=merge"))
    assert merged["rows"] == 600 and merged["folder"] == trained["folder"]
    stamps = {path: path.stat().st_mtime_ns for path in tmp_path.glob("index.faiss/*/*/*")}
    assert len(stamps) == 6 * 2 + 3
    stage("stage=train")
    stage("stage=build")
    assert {path: path.stat().st_mtime_ns for path in stamps} == stamps


def test_bad_settings_are_said_in_one_line(home, tmp_path):
    index = draw_index(tmp_path / "index")
    for more, message in (
        (["stage=all"], "stage=all; expected train, build or merge"),
        (["stage=train", "index.factory=IVF"], "by factory 'IVF'"),
        (["stage=build", "worker=2", "num_workers=2"], "worker=2 of num_workers=2"),
    ):
        done = run(home, "eval", "index_shards", f"index_folder={index.folder}", *more, check=False)
        assert done.returncode == 1 and "Traceback" not in done.stderr
        assert message in done.stderr.splitlines()[-1]


@pytest.fixture
def script(tmp_path):
    """slurm/index_shards.sbatch with a stand-in for python, which fails on what is broken."""
    python = tmp_path / "venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text(
        f'#!/bin/sh\necho "$@" >> {tmp_path}/log\n'
        'case "$*" in *stage=build*broken*) exit 3;; esac\n'
    )
    python.chmod(0o755)
    (tmp_path / "site.env").write_text(f"TRIAX_VENV={tmp_path}/venv\n")

    def start(*arguments, **array):
        (tmp_path / "log").write_text("")
        given = {f"SLURM_ARRAY_TASK_{key}": str(value) for key, value in array.items()}
        done = subprocess.run(
            ["bash", "slurm/index_shards.sbatch", *arguments],
            cwd=ROOT,
            env=os.environ | {"TRIAX_SITE": str(tmp_path / "site.env")} | given,
            capture_output=True,
            text=True,
            check=False,
        )
        return done.returncode, (tmp_path / "log").read_text().splitlines(), done.stderr

    return start


def test_the_script_runs_one_stage_or_all_and_stops_at_a_fault(script):
    assert script("train", "corpus=x")[:2] == (0, ["eval/index_shards.py stage=train corpus=x"])
    _, calls, _ = script("all", "corpus=x")
    assert calls == [
        f"eval/index_shards.py stage={stage} corpus=x" for stage in ("train", "build", "merge")
    ]
    code, calls, _ = script("all", "broken=1")
    assert code == 3 and len(calls) == 2


def test_the_script_shares_shards_among_the_tasks_of_an_array(script):
    _, calls, _ = script("build", "corpus=x", ID=6, MIN=4, COUNT=3)
    assert calls == ["eval/index_shards.py stage=build worker=2 num_workers=3 corpus=x"]


@pytest.mark.parametrize(("stages", "said"), [((), "the stage: train"), (("grow",), "no stage")])
def test_the_script_says_how_it_is_asked(script, stages, said):
    code, calls, stderr = script(*stages)
    assert code != 0 and calls == [] and said in stderr
