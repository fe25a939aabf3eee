"""docs/cluster.md does what it says: its ten commands lead to the figure of a sweep."""

import json
import re
import shlex
from pathlib import Path

import pytest

from triax.models.adapters import SHIPPED
from triax.models.weights import locate

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "docs" / "cluster.md").read_text("utf-8")
COMMANDS = re.search(r"```bash\n(.*?)```", TEXT, re.DOTALL).group(1).splitlines()
# They make a checkout, an environment and a site file, all of which the tests have.
BEFORE = ("git clone", "make demo", ".venv/bin/pip install", "cp slurm/site/", "export TRIAX_SITE=")


def test_there_are_ten():
    assert len(COMMANDS) == 10
    assert [line.startswith(start) for line, start in zip(COMMANDS, BEFORE)] == [True] * 5
    site = ROOT / shlex.split(COMMANDS[3])[1]
    assert site.is_file()


def test_the_folders_that_are_named_are_set_by_the_site_file(cluster):
    site = ROOT / shlex.split(COMMANDS[3])[1]
    told = cluster.call(
        "bash", "-c", f'source {site} && echo "$TRIAX_RUNS $TRIAX_VENV"', SCRATCH="/s"
    )
    assert told == f"/s/triax/runs {cluster.env['TRIAX_VENV']}"


@pytest.mark.weights
def test_they_lead_to_a_figure(cluster, tmp_path):
    """With the resources that the scripts ask for; the models are the shipped ones."""
    locate(json.loads((SHIPPED / "router" / "config.json").read_text("utf-8"))["base"])
    *submitting, collecting = [
        line.replace(".venv/bin/python", '"$TRIAX_VENV/bin/python"') for line in COMMANDS[5:]
    ]
    places = {"TRIAX_RUNS": tmp_path / "runs", "TRIAX_ARTIFACTS": tmp_path / "artifacts"}
    places |= {"SBATCH_OUTPUT": f"{tmp_path}/%A_%a.out"}
    said = cluster.call("bash", "-ec", "\n".join(submitting), timeout=300, **places)
    array = re.search(r"Submitted batch job (\d+)", said).group(1)
    assert f" {array}_[0-3]" in said  # squeue lists what waits for the first job
    logs = [path.read_text()[-2000:] for path in tmp_path.glob("*.out")]
    assert cluster.wait(array, timeout=900) == ["COMPLETED"] * 4, logs
    cluster.call("bash", "-ec", collecting, timeout=300, **places)
    study = tmp_path / "runs" / "studies" / "first"
    rows = [json.loads(line) for line in (study / "table.jsonl").open()]
    assert [row["settings"] for row in rows] == [{"pipeline.num_chunks": k} for k in (1, 3, 5, 10)]
    assert [row["answer/scored"] for row in rows] == [20] * 4
    assert (study / "figure.svg").read_text().count("<circle") == 4
    shown = {row["settings"]["pipeline.num_chunks"]: row["answer/f1"] for row in rows}
    # As the demo, whose table says .65: the solver of 20 questions, not their rounding.
    assert abs(shown[3] - 0.65) <= 0.1
