"""The job scripts are plain bash that calls the programs in order."""

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SCRIPTS = sorted((ROOT / "slurm").glob("*.sbatch"))


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_a_script_parses_and_asks_to_be_requeued(path):
    subprocess.run(["bash", "-n", str(path)], check=True)
    assert "#SBATCH --requeue" in path.read_text(encoding="utf-8")


def test_a_run_goes_through_all_programs_and_stops_at_a_fault(tmp_path):
    python = tmp_path / "venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text(
        f'#!/bin/sh\necho "$@" >> {tmp_path}/log\ncase "$*" in *broken*) exit 3;; esac\n'
    )
    python.chmod(0o755)
    site = tmp_path / "site.env"
    site.write_text(f"TRIAX_VENV={tmp_path}/venv\n")

    def start(*arguments):
        (tmp_path / "log").unlink(missing_ok=True)
        done = subprocess.run(
            ["bash", "slurm/answer.sbatch", *arguments],
            cwd=ROOT,
            env=os.environ | {"TRIAX_SITE": str(site)},
            check=False,
        )
        return done.returncode, (tmp_path / "log").read_text().splitlines()

    code, calls = start("name=x", "pipeline=bm25")
    assert code == 0
    assert calls == [
        f"eval/{program}.py name=x pipeline=bm25"
        for program in ("extract", "index", "answer", "score")
    ]
    code, calls = start("name=broken")
    assert code == 3 and len(calls) == 1


def test_a_training_is_one_program_with_the_number_of_its_array(tmp_path):
    python = tmp_path / "venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text(f'#!/bin/sh\necho "$@" >> {tmp_path}/log\nexit 3\n')
    python.chmod(0o755)
    site = tmp_path / "site.env"
    site.write_text(f"TRIAX_VENV={tmp_path}/venv\n")

    def start(*arguments, **environment):
        done = subprocess.run(
            ["bash", "slurm/train.sbatch", *arguments],
            cwd=ROOT,
            env=os.environ | {"TRIAX_SITE": str(site)} | environment,
            capture_output=True,
            text=True,
            check=False,
        )
        return done.returncode, done.stderr

    settings = ("solver", "name=seed-%a", "seed=%a", "task=write")
    assert start(*settings, SLURM_ARRAY_TASK_ID="2")[0] == 3
    assert start("extractor", "name=x")[0] == 3
    assert (tmp_path / "log").read_text().splitlines() == [
        "train/solver.py name=seed-2 seed=2 task=write",
        "train/extractor.py name=x",
    ]
    code, said = start()
    assert code != 0 and "the program: solver or extractor" in said


@pytest.fixture
def sweep(tmp_path):
    """slurm/sweep.sbatch with a stand-in for python, which fails on what is broken."""
    python = tmp_path / "venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text(
        f'#!/bin/sh\necho "$@" >> {tmp_path}/log\ncase "$*" in *broken*) exit 3;; esac\n'
    )
    python.chmod(0o755)
    (tmp_path / "site.env").write_text(f"TRIAX_VENV={tmp_path}/venv\n")

    def start(*arguments, task=None, of=1, least=0):
        (tmp_path / "log").write_text("")
        array = {} if task is None else {"ID": task, "COUNT": of, "MIN": least}
        done = subprocess.run(
            ["bash", "slurm/sweep.sbatch", *arguments],
            cwd=ROOT,
            env=os.environ
            | {"TRIAX_SITE": str(tmp_path / "site.env")}
            | {f"SLURM_ARRAY_TASK_{key}": str(value) for key, value in array.items()},
            capture_output=True,
            text=True,
            check=False,
        )
        return done.returncode, (tmp_path / "log").read_text().splitlines(), done.stderr

    return start


def both(*settings):
    return [f"eval/{name}.py {one}" for one in settings for name in ("answer", "score")]


def test_a_sweep_without_an_array_takes_one_value_after_another(sweep):
    code, calls, _ = sweep("pipeline.num_chunks=1,3", "--", "study=x", "corpus=demo")
    assert code == 0
    assert calls == both(
        "pipeline.num_chunks=1 study=x corpus=demo", "pipeline.num_chunks=3 study=x corpus=demo"
    )


def test_the_tasks_of_an_array_share_all_pairs(sweep):
    """k 1, 2, 3 by t -0.5, 0: six pairs, for tasks 4 to 7 two, two, one and one."""
    swept = ("k=1,2,3", "t=-0.5,0", "--", "study=x")
    taken = [sweep(*swept, task=task, of=4, least=4)[1] for task in range(4, 8)]
    assert [len(one) for one in taken] == [4, 4, 2, 2]
    assert taken[0] == both("k=1 t=-0.5 study=x", "k=2 t=0 study=x")
    pairs = {call.partition(" ")[2] for one in taken for call in one}
    assert pairs == {f"k={k} t={t} study=x" for k in (1, 2, 3) for t in ("-0.5", "0")}


def test_a_task_too_many_has_nothing_to_do(sweep):
    assert sweep("k=1,2", "--", task=2, of=3)[:2] == (0, [])


def test_a_run_that_fails_leaves_the_others(sweep):
    code, calls, _ = sweep("name=a,broken,b", "--", "corpus=demo")
    assert code == 1
    assert calls == [
        *both("name=a corpus=demo"),
        "eval/answer.py name=broken corpus=demo",
        *both("name=b corpus=demo"),
    ]


@pytest.mark.parametrize("arguments", [(), ("k=1,2",), ("--", "k=1,2"), ("k", "--", "study=x")])
def test_a_sweep_says_how_it_is_asked(sweep, arguments):
    code, calls, said = sweep(*arguments)
    assert (code, calls) == (2, []) and "before --" in said
