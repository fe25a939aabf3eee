"""Sweeps and a search as arrays of real jobs, each collected to a table and a figure.

The jobs have no network but that of the nodes. Question words and slots are gold, and a stand-in
for a language model reads: it gives the gold answer where the prompt's passages hold it, so that
scores rise with what was found. The router is the shipped one.
"""

import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "llm"))

from fake_server import FakeServer

from triax.models.adapters import SHIPPED
from triax.models.weights import default_cache, locate

ROOT = Path(__file__).resolve().parents[2]
CORPUS = ["corpus=demo", "corpus.split=dev", "corpus.limit=6", "extractor=sentences"]
PARTS = ["encoder=hashing", "solver=small_prompted", "decomposer=gold", "resolver=gold"]
HOST = "10.77.0.1"  # this machine, as the nodes see it


def _read(body):
    """The first gold answer that stands in the prompt besides the question."""
    text = "\n".join(message["content"] for message in body["messages"])
    for row in _questions():
        if row["question"] in text:
            rest = text.replace(row["question"], "")
            return next((answer for answer in row["answers"] if answer in rest), "unknown")
    return "unknown"


def _questions():
    path = ROOT / "src" / "triax" / "corpora" / "demo" / "questions.jsonl"
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


class House:
    """One folder for runs and data of this module, and what is done in it."""

    def __init__(self, cluster, folder, url):
        self.cluster, self.folder = cluster, folder
        self.settings = [*CORPUS, *PARTS, "llm=http", "llm.model=fake", f"llm.base_url={url}"]
        places = {"TRIAX_RUNS": "runs", "TRIAX_ARTIFACTS": "artifacts", "TRIAX_CACHE": "cache"}
        self.env = {key: str(folder / name) for key, name in places.items()}
        self.env |= {"HF_HUB_OFFLINE": "1", "JAX_PLATFORMS": "cpu"}

    def program(self, name, *overrides, check=True, **environment):
        command = [sys.executable, f"eval/{name}.py", *overrides]
        return self.cluster.call(*command, timeout=600, check=check, **self.env, **environment)

    def submit(self, script, *arguments, options=()):
        return self.cluster.submit(
            script, *arguments, options=options, folder=self.folder, **self.env
        )

    def study(self, name):
        return self.folder / "runs" / "studies" / name

    def rows(self, study):
        return [json.loads(line) for line in (self.study(study) / "table.jsonl").open()]

    def said(self):
        return "\n".join(path.read_text()[-1500:] for path in sorted(self.folder.glob("*.out")))


@pytest.fixture(scope="module")
def house(cluster, tmp_path_factory):
    """With triplets and an index that a first job made, as the planner of a sweep said."""
    folder = tmp_path_factory.mktemp("sweeps")
    (folder / "cache").mkdir()
    (folder / "cache" / "models").symlink_to(default_cache(), target_is_directory=True)
    with FakeServer(_read, host=HOST) as server:
        made = House(cluster, folder, server.base_url)
        said = made.program("plan_sweep", "+sweep=rounds", "study=first", *made.settings)
        manifest = made.study("first") / "manifest.jsonl"
        assert f"{manifest} prepare=true" in said
        job = made.submit("sweep_array.sbatch", manifest, "prepare=true")
        assert cluster.wait(job) == ["COMPLETED"], made.said()
        yield made


def _collect_array(house, study, sweep, *swept, tasks):
    said = house.program("plan_sweep", f"+sweep={sweep}", f"study={study}", *swept, *house.settings)
    manifest = house.study(study) / "manifest.jsonl"
    assert f"sbatch --array=0-{tasks - 1} slurm/sweep_array.sbatch {manifest}" in said
    return house.submit("sweep_array.sbatch", manifest, options=[f"--array=0-{tasks - 1}"])


@pytest.mark.weights
def test_sweeps_of_threshold_k_and_rounds(house):
    """Three arrays at once. Of the values of k one is none: it alone fails, and is named."""
    locate(json.loads((SHIPPED / "router" / "config.json").read_text("utf-8"))["base"])
    jobs = [
        _collect_array(house, "n", "rounds", "pipeline.max_rounds=1,2,3", tasks=3),
        _collect_array(
            house,
            "t",
            "thresholds",
            "pipeline.router.threshold=-1.5,0.2,1.5",
            "pipeline@pipeline.vanilla=bm25",
            tasks=3,
        ),
        _collect_array(house, "k", "k", "pipeline.num_chunks=1,10,many", "pipeline=bm25", tasks=3),
    ]
    states = [house.cluster.wait(job, timeout=900) for job in jobs]
    assert states[:2] == [["COMPLETED"] * 3] * 2, house.said()
    assert sorted(states[2]) == ["COMPLETED", "COMPLETED", "FAILED"]
    refused = house.program("study", "study=k", check=False)
    assert not refused
    said = house.program("study", "study=k", "partial=true")
    (line,) = [one for one in said.splitlines() if one.startswith("- k-kmany")]
    assert f"failed: answer ended with 1 in job {jobs[2]}_2 on n" in line and "TypeError" in line
    for study, setting, values in (
        ("n", "pipeline.max_rounds", [1, 2, 3]),
        ("t", "pipeline.router.threshold", [-1.5, 0.2, 1.5]),
        ("k", "pipeline.num_chunks", [1, 10]),
    ):
        if study != "k":
            house.program("study", f"study={study}")
        rows = house.rows(study)
        assert [row["settings"][setting] for row in rows] == values
        assert len({row["answer/f1"] for row in rows}) > 1, rows
        figure = (house.study(study) / "figure.svg").read_text()
        assert figure.count("<circle") == len(values) and setting in figure
    # At 0.2 the router sends some questions to either side: what is found is of neither alone.
    assert len({row["retrieval/recall@5"] for row in house.rows("t")}) == 3
    # By construction: more rounds and more passages hold more answers.
    for study in "nk":
        f1 = [row["answer/f1"] for row in house.rows(study)]
        assert f1 == sorted(f1)


def _statuses(house):
    studies = house.folder / "runs" / "studies"
    return [json.loads(p.read_text()) for p in studies.glob("*/status/*.json")]


def test_hydra_and_submitit_give_the_same_numbers(house):
    """The k sweep once more, by its array and by Hydra's launcher."""
    swept = ["+sweep=k", "pipeline.num_chunks=1,10", "pipeline=bm25", *house.settings]
    house.program("plan_sweep", *swept, "study=array")
    manifest = house.study("array") / "manifest.jsonl"
    job = house.submit("sweep_array.sbatch", manifest, options=["--array=0-1"])
    small = {"TRIAX_CPUS": "1", "TRIAX_MEM_GB": "2"}
    for program in ("answer", "score"):
        house.program(program, "-m", *swept, "study=hydra", "hydra/launcher=slurm", **small)
    assert house.cluster.wait(job, timeout=600) == ["COMPLETED"] * 2, house.said()
    tables = []
    for study in ("array", "hydra"):
        house.program("study", f"study={study}")
        tables.append([_numbers(row) for row in house.rows(study)])
    assert tables[0] == tables[1] and len(tables[0]) == 2
    ran = [json.loads(p.read_text()) for p in (house.study("hydra") / "status").iterdir()]
    assert {status["state"] for status in ran} == {"finished"}
    assert all(status["attempt"]["host"] in house.cluster.nodes for status in ran)


def _numbers(row):
    """All but times, and what the cache of calls knew already."""
    passing = ("second", "cached", "run")
    return {key: value for key, value in row.items() if not any(one in key for one in passing)}


def test_two_workers_search_and_one_is_requeued(house):
    """Three trials; the one that a requeued worker had goes on under its name."""
    search = ["+search=t2rag", "study=s", "search.trials=3", *house.settings]
    job = house.submit("search_array.sbatch", *search, options=["--array=0-1"])
    status = house.study("s") / "status"

    def running_by_first():
        found = [json.loads(p.read_text()) for p in status.glob("s-*.json")]
        return [one["name"] for one in found if one["attempt"]["job"] == f"{job}_0"]

    (lost,) = house.cluster.until(running_by_first, "the first worker has a trial", 300)
    house.cluster.call("scontrol", "requeue", f"{job}_0")
    house.cluster.start_again(f"{job}_0")
    assert house.cluster.wait(job, timeout=900) == ["COMPLETED"] * 2, house.said()
    house.program("study", "study=s")
    rows = house.rows("s")
    assert len(rows) == 3 and lost in {row["run"] for row in rows}
    best = json.loads((house.study("s") / "best.json").read_text())
    assert best["answer/f1"] == max(row["answer/f1"] for row in rows)
    assert (house.study("s") / "figure.svg").exists()
    assert json.loads((status / f"{lost}.json").read_text())["state"] == "finished"
