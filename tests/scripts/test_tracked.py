"""What the programs tell their trackers, and that telling it changes nothing else."""

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from running import ROOT, run

sys.path.insert(0, str(ROOT / "tests" / "llm"))
sys.path.insert(0, str(ROOT / "tests" / "tracking"))

from fake_server import FakeServer
from offline_runs import read_newest, read_runs

SHARED = ["extractor=sentences", "encoder=hashing", "corpus=demo", "corpus.split=dev"]
SHARED += ["corpus.limit=3", "solver=small_prompted", "pipeline=bm25", "++study=demo"]


@pytest.fixture
def home(tmp_path):
    places = {"TRIAX_RUNS": "runs", "TRIAX_ARTIFACTS": "artifacts", "TRIAX_CACHE": "cache"}
    found = {key: str(tmp_path / name) for key, name in places.items()}
    return found | {"HOME": str(tmp_path), "WANDB_ERROR_REPORTING": "false"}


def rows(path):
    return [json.loads(line) for line in path.open()]


def sha256(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_a_study_is_told_by_its_folder_alone_or_to_w_and_b_too(home, tmp_path):
    """The same runs, first as by default and then tracked offline: no answer is made again."""
    # Without the package nothing may ask for it.
    barred = tmp_path / "barred" / "wandb.py"
    barred.parent.mkdir()
    barred.write_text("raise RuntimeError('wandb was imported')")
    runs = Path(home["TRIAX_RUNS"])
    with FakeServer(lambda body: "Peter Bogdanovich") as server:
        given = [*SHARED, "llm=http", "llm.model=fake", f"llm.base_url={server.base_url}"]
        for k in (1, 2):
            run_k = [*given, f"name=k{k}", f"pipeline.num_chunks={k}"]
            for program in ("answer", "score"):
                run(home | {"PYTHONPATH": str(barred.parent)}, "eval", program, *run_k)
        asked = len(server.received)
        run(home | {"PYTHONPATH": str(barred.parent)}, "eval", "study", "study=demo")
        folder = runs / "answer" / "k1"
        by_question = rows(folder / "table-per_question.jsonl")
        assert [row["prediction"] for row in by_question] == ["Peter Bogdanovich"] * 3
        assert by_question[0].keys() >= {"question", "answers", "em", "f1", "seconds", "recall@2"}
        lineage = {row["name"]: row for row in rows(folder / "lineage.jsonl")}
        assert set(lineage) == {"answers-k1", "scores-k1"}
        assert lineage["scores-k1"]["inputs"] == {"answers-k1": sha256(folder / "answers.jsonl")}
        studied = runs / "studies" / "demo"
        (made,) = rows(studied / "lineage.jsonl")
        assert made["inputs"] == {
            f"scores-k{k}": sha256(runs / "answer" / f"k{k}" / "metrics.json") for k in (1, 2)
        }
        assert not list(runs.rglob("wandb*"))
        pytest.importorskip("wandb")
        offline = ["tracker=wandb_offline", "name=k1", "pipeline.num_chunks=1"]
        for program in ("answer", "score"):
            run(home, "eval", program, *given, *offline)
        assert len(server.received) == asked
    run(home, "eval", "study", "study=demo", "tracker=wandb_offline")
    found = {one.job_type: one for one in read_runs(runs)}
    assert {name: one.group for name, one in found.items()} == dict.fromkeys(
        ("answer", "score", "study"), "demo"
    )
    study = found["study"]
    assert [row["pipeline.num_chunks"] for row in study.table("runs")] == [1, 2]
    (page,) = (row["figure/path"] for row in study.rows if "figure/path" in row)
    assert (studied / "figure.svg").read_text() in (study.folder / "files" / page).read_text()
    assert study.artifacts["study-demo"]["metadata"]["inputs"] == made["inputs"]
    assert found["answer"].config["environment"]["versions"]["triax"]


def test_a_run_that_fails_is_a_failed_one(home):
    pytest.importorskip("wandb")
    gone = run(
        home,
        "eval",
        "answer",
        *SHARED,
        "name=x",
        "pipeline=dense",
        "tracker=wandb_offline",
        check=False,
    )
    assert gone.returncode and "run `python eval/index.py`" in gone.stderr
    assert read_newest(Path(home["TRIAX_RUNS"])).exit_code == 1


def test_an_extraction_tells_its_weights(home):
    """An adapter is called by its fingerprint, which the trained run's artifact has too."""
    program = """
import sys
sys.path[:0] = sys.argv[1:2]
import tracked
from pathlib import Path
from triax.corpora.corpus import build_corpus
from triax.records.documents import Document
from triax.tracking.jsonl import JsonlTracker
corpus = build_corpus("c", [Document("d", "Ulm is a city.", "Ulm")], [])
report = {"num_chunks": 1, "num_triplets": 2, "seconds": 0.5, "failed_chunk_ids": ["x"]}
folder = Path("artifacts/triplets/c/trained-0123456789ab")
tracked.tell_triplets(JsonlTracker("run"), corpus, folder, report, {"mine": "ef" * 32})
print(corpus.fingerprint)
"""
    done = subprocess.run(
        [sys.executable, "-c", program, ROOT / "eval"],
        cwd=home["HOME"],
        env=os.environ | home,
        capture_output=True,
        text=True,
        check=True,
    )
    folder = Path(home["HOME"]) / "run"
    documents, triplets = rows(folder / "lineage.jsonl")
    fingerprint = done.stdout.strip()
    assert (documents["digest"], documents["counts"]) == (
        fingerprint,
        {"documents": 1, "chunks": 1},
    )
    assert triplets["name"] == "triplets-c-trained-0123456789ab"
    assert triplets["digest"] == "0123456789ab"
    assert triplets["inputs"] == {"corpus-c": fingerprint, "weights-" + "ef" * 6: "ef" * 32}
    assert json.loads((folder / "summary.json").read_text()) == {
        "num_chunks": 1.0,
        "num_triplets": 2.0,
        "seconds": 0.5,
    }
