"""Training, an array that builds, merging, answering: a chain of jobs over one index."""

import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "llm"))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "indexing"))

from fake_server import FakeServer
from random_index import draw_index

pytest.importorskip("faiss")
# The address of this machine, as the nodes see it (cluster.sh).
HOST = "10.77.0.1"
SHARED = ["corpus=demo", "corpus.split=dev", "corpus.limit=4", "extractor=sentences"]
SHARED += ["encoder=hashing", "solver=small_prompted", "pipeline=t2rag", "llm=http"]
SHARDS = ["index.factory='IVF8,Flat'", "index.shards=5"]


def reply(body):
    """A stand-in that knows one film."""
    asked = body["messages"][-1]["content"]
    if asked.startswith("Question:") and "placeholder" in body["messages"][0]["content"]:
        return "The Last Picture Show | directed by | ?director"
    return "Peter Bogdanovich"


def found_by(places, name):
    """Of each question what was searched, what was found, and the answer."""
    path = Path(places["TRIAX_RUNS"]) / "answer" / name / "traces.jsonl"
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    return {row["question_id"]: (row["answer"], row["rounds"]) for row in rows}


def test_a_chain_of_jobs_builds_shards_that_answer_as_the_flat_index(cluster, places, tmp_path):
    with FakeServer(reply, host=HOST) as server:
        shared = [*SHARED, "llm.model=fake", f"llm.base_url={server.base_url}"]

        def submit(script, *arguments, options=()):
            return cluster.submit(
                script, *arguments, *shared, options=options, folder=tmp_path, **places
            )

        flat = submit("answer.sbatch", "name=flat", "index=flat")
        jobs = {"flat": flat}
        for stage, array in (("train", ()), ("build", ("--array=0-1",)), ("merge", ())):
            options = [f"--dependency=afterok:{list(jobs.values())[-1]}", *array]
            jobs[stage] = submit("index_shards.sbatch", stage, *SHARDS, options=options)
        answering = ["name=sharded", "index=faiss_shards", "index.probes=8", "index.source=merged"]
        options = [f"--dependency=afterok:{jobs['merge']}"]
        jobs["sharded"] = submit("answer.sbatch", *answering, *SHARDS, options=options)
        states = cluster.wait(jobs["sharded"], timeout=600)
    output = "\n".join(path.read_text()[-2000:] for path in sorted(tmp_path.glob("*.out")))
    assert states == ["COMPLETED"], output
    shards = sorted(path.name for path in Path(places["TRIAX_ARTIFACTS"]).glob("**/*.faiss/*/*"))
    assert shards == ["merged", "plan.json", *(f"shard-0000{i}" for i in range(5)), "trained"]
    built = [
        json.loads(line)["shards"]
        for path in tmp_path.glob(f"*-{jobs['build']}_*.out")
        for line in path.read_text().splitlines()
        if line.startswith("{")
    ]
    assert sorted(built) == [[0, 2, 4], [1, 3]]
    flat_found = found_by(places, "flat")
    assert len(flat_found) == 4 and all(rounds for _, rounds in flat_found.values())
    assert found_by(places, "sharded") == flat_found


def test_a_merge_that_came_too_early_names_what_is_missing(cluster, places, tmp_path):
    index = draw_index(tmp_path / "index")
    settings = [f"index_folder={index.folder}", "index.factory='IVF6,SQ8'", "index.shards=3"]
    train = cluster.submit("index_shards.sbatch", "train", *settings, folder=tmp_path, **places)
    early = cluster.submit(
        "index_shards.sbatch",
        "merge",
        *settings,
        options=[f"--dependency=afterok:{train}"],
        folder=tmp_path,
        **places,
    )
    assert cluster.wait(early) == ["FAILED"]
    said = next(tmp_path.glob(f"*-{early}.out")).read_text()
    assert "3 of 3 shards are missing" in said and "shard-00000, shard-00001, shard-00002" in said
