"""Jobs on the real Slurm write offline runs of Weights & Biases; they are read back here."""

import hashlib
import json
import sys
import threading
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "llm"))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tracking"))

from fake_server import FakeServer
from offline_runs import read_runs

pytest.importorskip("wandb")

# The end of the nodes' network on this machine (see cluster.sh).
HOST = "10.77.0.1"
SHARED = ["corpus=demo", "corpus.split=dev", "corpus.limit=3", "extractor=sentences"]
SHARED += ["encoder=hashing", "solver=small_prompted", "llm=http", "llm.model=fake"]
TASKS = """#!/usr/bin/env bash
set -euo pipefail
cd "$SLURM_SUBMIT_DIR"
for program in answer score; do
  "$TRIAX_VENV/bin/python" "eval/$program.py" "name=run-$SLURM_ARRAY_TASK_ID" \\
    "pipeline.num_chunks=$((SLURM_ARRAY_TASK_ID + 1))" "$@"
done
"""


@pytest.fixture
def home(places, tmp_path):
    """A node's home is not the place where runs are sent from: nothing may be left in it."""
    (tmp_path / "home").mkdir()
    # What a node says is never more than what the configuration asks for.
    told = {"HOME": str(tmp_path / "home"), "WANDB_MODE": "online"}
    return places | told | {"WANDB_ERROR_REPORTING": "false"}


def by_program(runs):
    """The newest part of each program's run."""
    return {run.job_type: run for run in runs}


def output(folder):
    return "".join(path.read_text() for path in sorted(folder.glob("*.out")))


def sha256(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def inputs(run, name):
    return run.artifacts[name]["metadata"]["inputs"]


def test_a_job_tells_where_its_scores_come_from(cluster, home, tmp_path):
    runs = Path(home["TRIAX_RUNS"])
    with FakeServer(lambda body: "Peter Bogdanovich", host=HOST) as server:
        given = [*SHARED, f"llm.base_url={server.base_url}", "pipeline=dense", "name=whole"]
        job = cluster.submit(
            "answer.sbatch", *given, "tracker=wandb_offline", folder=tmp_path, **home
        )
        assert cluster.wait(job) == ["COMPLETED"], output(tmp_path)
    found = by_program(read_runs(runs))
    assert set(found) == {"extract", "index", "answer", "score"}
    assert all(run.exit_code == 0 and run.project == "triax" for run in found.values())
    assert {run.group for run in found.values()} == {""}  # no study, no array
    # From the scores back to the corpus, each step by name and digest of the one before.
    folder = runs / "answer" / "whole"
    extract, index, answer, score = map(found.get, ("extract", "index", "answer", "score"))
    assert inputs(score, "scores-whole") == {"answers-whole": sha256(folder / "answers.jsonl")}
    assert inputs(answer, "answers-whole").keys() == {"corpus-demo", *made(index, "index")}
    assert inputs(index, *made(index, "index")) == digests(extract, "triplets")
    assert inputs(extract, *made(extract, "triplets")) == digests(extract, "corpus")
    assert digests(index, "index").items() <= inputs(answer, "answers-whole").items()
    fingerprint = json.loads((folder / "config.json").read_text())["corpus_fingerprint"]
    assert digests(extract, "corpus") == {"corpus-demo": fingerprint}
    (index_folder,) = (Path(home["TRIAX_ARTIFACTS"]) / "index" / "demo").glob("[!.]*-*")
    files = index.artifacts[next(iter(made(index, "index")))]["files"]
    assert files["vectors.npy"] == str(index_folder / "vectors.npy")
    # The folders of runs tell it too, without W&B.
    lineage = [json.loads(line) for line in (folder / "lineage.jsonl").open()]
    assert {row["name"]: row["inputs"] for row in lineage} == {
        "answers-whole": inputs(answer, "answers-whole"),
        "scores-whole": inputs(score, "scores-whole"),
    }
    # All that is to be sent lies below the run folders.
    sent = [
        path
        for run in found.values()
        for one in run.artifacts.values()
        for path in one["files"].values()
    ]
    artifacts = Path(home["TRIAX_ARTIFACTS"])
    assert sent and all(
        Path(path).is_relative_to(runs) or Path(path).is_relative_to(artifacts) for path in sent
    )


def made(run, kind):
    return {name for name, one in run.artifacts.items() if one["kind"] == kind}


def digests(run, kind):
    return {name: run.artifacts[name]["metadata"]["hash"] for name in made(run, kind)}


def test_the_tasks_of_an_array_are_a_group_and_a_requeued_one_goes_on(cluster, home, tmp_path):
    """Two tasks wait for their model; one is requeued meanwhile, as by preemption."""
    runs, gate = Path(home["TRIAX_RUNS"]), threading.Event()
    script = tmp_path / "tasks.sbatch"
    script.write_text(TASKS)

    def wait(body, before):
        gate.wait(240)

    with FakeServer(lambda body: "Peter Bogdanovich", fault=wait, host=HOST) as server:
        given = [*SHARED, f"llm.base_url={server.base_url}", "pipeline=bm25", "++study=k"]
        job = cluster.submit(
            script,
            *given,
            "tracker=wandb_offline",
            options=["--array=0-1", "--requeue"],
            folder=tmp_path,
            **home,
        )
        begun = "both tasks are asking"
        cluster.until(lambda: len({i for i in (0, 1) if asks(runs, i, server)}) == 2, begun, 240)
        cluster.call("scontrol", "requeue", f"{job}_1")
        gate.set()
        cluster.start_again(f"{job}_1")
        assert cluster.wait(job) == ["COMPLETED"] * 2, output(tmp_path)
    ids = {}
    for task in (0, 1):
        folder = runs / "answer" / f"run-{task}"
        parts = read_runs(folder)
        newest = by_program(parts)
        assert set(newest) >= {"answer", "score"}
        state = json.loads((folder / "wandb.json").read_text())
        ids[task] = state
        for program in ("answer", "score"):
            run = newest[program]
            assert (run.id, run.group, run.name) == (state[program], "k", f"run-{task}")
            assert {"corpus:demo", "pipeline:bm25", "llm:http"} <= set(run.tags)
            assert run.exit_code == 0 and (run.folder / "finished").exists()
            slurm = run.config["slurm"]
            assert slurm["slurm_array_job_id"] == job.partition("_")[0]
            assert slurm["slurm_array_task_id"] == str(task)
            assert slurm["slurmd_nodename"] in cluster.nodes
            assert slurm.get("slurm_restart_count", "0") == str(task)  # task 1 was requeued
            assert run.config["pipeline"]["num_chunks"] == task + 1
            assert run.config["environment"]["git"]
            assert len(run.config["corpus_fingerprint"]) == 64
        # The parts of task 1: one that was killed, then the one that ended.
        of_answer = [part for part in parts if part.folder.name.endswith(state["answer"])]
        assert len(of_answer) == task + 1
        metrics = json.loads((folder / "metrics.json").read_text())
        shown = newest["score"].summary
        assert {name: shown[name] for name in metrics} == pytest.approx(metrics)
        rows = [json.loads(line) for line in (folder / "per_question.jsonl").open()]
        table = newest["score"].table("per_question")
        assert [row["question_id"] for row in table] == [row["question_id"] for row in rows]
        assert [row["em"] for row in table] == [row["em"] for row in rows]
        assert all(row["prediction"] == "Peter Bogdanovich" for row in table)
        assert all(row["question"].endswith("?") and json.loads(row["answers"]) for row in table)
        answers = inputs(newest["answer"], f"answers-run-{task}")
        assert set(answers) == {"corpus-demo"}  # BM25 opens no index
    assert len({one for state in ids.values() for one in state.values()}) == 4
    assert not list((tmp_path / "home").rglob("staging"))


def asks(runs, task, server):
    """Whether the task has opened its run and both tasks' questions have come to the model."""
    return (runs / "answer" / f"run-{task}" / "wandb.json").exists() and len(server.received) >= 4
