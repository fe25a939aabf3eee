"""Every script in slurm/: what it asks for exists, and shellcheck finds nothing."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
JOBS = sorted((ROOT / "slurm").glob("*.sbatch"))
SCRIPTS = sorted([*JOBS, *(ROOT / "slurm").rglob("*.sh"), *(ROOT / "slurm").rglob("*.env")])
SCRIPTS.append(ROOT / "tests" / "cluster" / "cluster.sh")


@pytest.mark.parametrize("path", JOBS, ids=lambda path: path.stem)
def test_slurm_takes_a_job_as_it_is(cluster, path):
    """As shipped, without the options that make it small."""
    cluster.call("sbatch", "--test-only", path)


def test_slurm_does_refuse(cluster, tmp_path):
    """What the test above would say of a job that asks for more than there is."""
    script = tmp_path / "large.sbatch"
    script.write_text("#!/bin/bash\n#SBATCH --gpus-per-node=64\nhostname\n")
    with pytest.raises(AssertionError, match="(?i)node configuration is not available"):
        cluster.call("sbatch", "--test-only", script)


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_shellcheck_finds_nothing(path):
    if shutil.which("shellcheck") is None:
        pytest.skip("shellcheck is not installed; tests/cluster/cluster.sh install")
    # What a site sets is used where it is sourced, and which one that is cannot be seen.
    left_out = "--exclude=SC1090" + (",SC2034" if path.suffix == ".env" else "")
    done = subprocess.run(
        ["shellcheck", "--external-sources", "--shell=bash", left_out, str(path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("path", JOBS, ids=lambda path: path.stem)
def test_a_job_never_asks_for_gpus_by_task(path):
    """JAX takes one process for each GPU and expects to see all of its node (jax issue 28194)."""
    asked = re.findall(r"^#SBATCH\s+(\S+)", path.read_text("utf-8"), re.MULTILINE)
    assert asked and not [one for one in asked if one.startswith("--gpus-per-task")]
