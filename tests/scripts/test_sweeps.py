"""A sweep is one command: a run for each value, which the next call does not repeat."""

import json
import sys
from pathlib import Path

import pytest
from hydra import compose, initialize_config_dir
from running import ROOT, run

sys.path.insert(0, str(ROOT / "tests" / "llm"))

from fake_server import FakeServer

SHARED = ["extractor=sentences", "encoder=hashing", "corpus=demo", "corpus.split=dev"]
SHARED += ["corpus.limit=3", "solver=small_prompted", "pipeline=bm25", "study=demo"]


def load(*overrides):
    with initialize_config_dir(str(ROOT / "conf"), version_base="1.3"):
        return compose("run", overrides=list(overrides), return_hydra_config=True)


def test_one_run_a_value(tmp_path):
    places = {"TRIAX_RUNS": "runs", "TRIAX_ARTIFACTS": "artifacts", "TRIAX_CACHE": "cache"}
    home = {key: str(tmp_path / name) for key, name in places.items()} | {"HOME": str(tmp_path)}
    sweep = ["-m", "+experiment=sweep_k", "pipeline.num_chunks=1,2", *SHARED]
    with FakeServer(lambda body: "Peter Bogdanovich") as server:
        sweep += ["llm=http", "llm.model=fake", f"llm.base_url={server.base_url}"]
        run(home, "eval", "answer", *sweep)
        asked = len(server.received)
        run(home, "eval", "answer", *sweep)
        assert len(server.received) == asked > 0
    for num_chunks in (1, 2):
        folder = Path(home["TRIAX_RUNS"]) / "answer" / f"demo-k{num_chunks}"
        rows = [json.loads(line) for line in (folder / "answers.jsonl").open()]
        assert [len(row["chunk_ids"]) for row in rows] == [num_chunks] * 3
    gone = run(home, "eval", "study", "study=demo", check=False)
    assert gone.returncode and "2 of 2 runs are not scored: demo-k1, demo-k2" in gone.stderr
    run(home, "eval", "score", *sweep)
    done = run(home, "eval", "study", "study=demo")
    assert "2 runs, varied: pipeline.num_chunks" in done.stdout
    study = Path(home["TRIAX_RUNS"]) / "studies" / "demo"
    rows = [json.loads(line) for line in (study / "table.jsonl").open()]
    assert [row["settings"] for row in rows] == [{"pipeline.num_chunks": k} for k in (1, 2)]
    for row in rows:
        scored = Path(home["TRIAX_RUNS"]) / "answer" / row["run"] / "metrics.json"
        assert row["answer/f1"] == json.loads(scored.read_text())["answer/f1"]
    assert "num_chunks=2" in (study / "table.md").read_text()
    assert "pipeline.num_chunks</text>" in (study / "figure.svg").read_text()
    gone = run(home, "eval", "study", "study=other", check=False)
    assert gone.returncode and "no run of study other" in gone.stderr and "['demo']" in gone.stderr


@pytest.mark.parametrize(
    "path", sorted((ROOT / "conf" / "experiment").glob("sweep_*.yaml")), ids=lambda path: path.stem
)
def test_what_is_swept_is_a_setting_and_names_its_run(path):
    """An unknown key, or two values under one name, would fail only once the runs are queued."""
    composed = load(f"+experiment={path.stem}", *(["name=x"] if "rewritten" in path.stem else []))
    names = set()
    for key, values in (composed.hydra.sweeper.params or {}).items():
        for value in values.split(","):
            names.add(load(f"+experiment={path.stem}", f"{key}={value}").name)
        assert len(names) == len(values.split(",")) > 1


def test_every_question_is_rewritten_and_goes_to_the_graph():
    pipeline = load("+experiment=sweep_rewritten", "name=x").pipeline
    assert pipeline["_target_"].endswith("assembly.hybrid")
    assert pipeline.router.threshold < -1 and pipeline.rewrite_threshold > 1
    assert pipeline.rewriter["_target_"] == load("name=x").decomposer["_target_"]
