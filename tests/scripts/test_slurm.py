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
