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


@pytest.mark.parametrize("name", ["router", "solver", "extractor"])
def test_a_training_is_one_program_with_the_number_of_its_array(tmp_path, name):
    python = tmp_path / "venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text(f'#!/bin/sh\necho "$@" >> {tmp_path}/log\nexit 3\n')
    python.chmod(0o755)
    site = tmp_path / "site.env"
    site.write_text(f"TRIAX_VENV={tmp_path}/venv\n")
    for task in ({"SLURM_ARRAY_TASK_ID": "2"}, {}):
        done = subprocess.run(
            ["bash", f"slurm/train_{name}.sbatch", "name=seed-%a", "seed=%a", "task=write"],
            cwd=ROOT,
            env=os.environ | {"TRIAX_SITE": str(site)} | task,
            check=False,
        )
        assert done.returncode == 3
    assert (tmp_path / "log").read_text().splitlines() == [
        f"train/{name}.py name=seed-{task} seed={task} task=write" for task in (2, 0)
    ]


@pytest.fixture
def venv(tmp_path):
    """An environment of stand-ins that write down what they are called with, and a site file."""
    folder = tmp_path / "venv" / "bin"
    folder.mkdir(parents=True)
    for name in ("python", "wandb"):
        program = folder / name
        program.write_text(
            f'#!/bin/sh\necho "{name} $@" >> {tmp_path}/log\nwhich python >&2\nexit 3\n'
        )
        program.chmod(0o755)
    (tmp_path / "site.env").write_text(f"TRIAX_VENV={tmp_path}/venv\n")

    def start(script, *arguments):
        done = subprocess.run(
            ["bash", f"slurm/{script}.sbatch", *arguments],
            cwd=ROOT,
            env=os.environ | {"TRIAX_SITE": str(tmp_path / "site.env")},
            capture_output=True,
            text=True,
            check=False,
        )
        log = tmp_path / "log"
        return done.returncode, log.read_text().splitlines() if log.exists() else [], done.stderr

    return start


@pytest.mark.parametrize(
    ("script", "arguments", "called"),
    [
        ("sweep_array", ["m.jsonl"], "python eval/run_jobs.py manifest=m.jsonl"),
        (
            "sweep_array",
            ["m.jsonl", "prepare=true"],
            "python eval/run_jobs.py manifest=m.jsonl prepare=true",
        ),
        (
            "search_array",
            ["+search=t2rag", "study=x"],
            "python eval/search.py +search=t2rag study=x",
        ),
        ("wandb_agent", ["me/triax/abc"], "wandb agent --count 1 me/triax/abc"),
        ("wandb_agent", ["me/triax/abc", "4"], "wandb agent --count 4 me/triax/abc"),
    ],
)
def test_a_driver_of_sweeps_ends_as_its_program_does(venv, script, arguments, called):
    code, calls, _ = venv(script, *arguments)
    assert (code, calls) == (3, [called])


def test_an_agent_starts_its_jobs_with_the_python_of_the_site(venv, tmp_path):
    said = venv("wandb_agent", "me/triax/abc")[2]
    assert said.split() == [f"{tmp_path}/venv/bin/python"]


@pytest.mark.parametrize(
    ("script", "what"), [("sweep_array", "the manifest"), ("wandb_agent", "the id")]
)
def test_a_driver_of_sweeps_says_what_it_needs(venv, script, what):
    code, calls, said = venv(script)
    assert code and not calls and what in said
