"""One file says what is swept; an array, Hydra's launchers, agents of W&B and Optuna run it."""

import json
import sys
from pathlib import Path

import pytest
import yaml
from hydra import compose, initialize_config_dir
from hydra.utils import instantiate
from running import ROOT, run
from wandb.sdk.lib.config_util import save_config_file_from_dict

sys.path.insert(0, str(ROOT / "tests" / "llm"))

from fake_server import FakeServer

SHARED = ["extractor=sentences", "encoder=hashing", "corpus=demo", "corpus.split=dev"]
SHARED += ["corpus.limit=3", "solver=small_prompted", "pipeline=bm25", "study=demo"]
SWEEPS = sorted(path.stem for path in (ROOT / "conf" / "sweep").glob("*.yaml"))


def load(*overrides):
    with initialize_config_dir(str(ROOT / "conf"), version_base="1.3"):
        return compose("run", overrides=list(overrides), return_hydra_config=True)


@pytest.fixture
def home(tmp_path):
    places = {"TRIAX_RUNS": "runs", "TRIAX_ARTIFACTS": "artifacts", "TRIAX_CACHE": "cache"}
    return {key: str(tmp_path / name) for key, name in places.items()} | {"HOME": str(tmp_path)}


@pytest.fixture(scope="module")
def server():
    with FakeServer(lambda body: "Peter Bogdanovich") as found:
        yield found


def asking(server):
    return [*SHARED, "llm=http", "llm.model=fake", f"llm.base_url={server.base_url}"]


def study_of(home, name="demo"):
    return Path(home["TRIAX_RUNS"]) / "studies" / name


def status_of(home, run_name):
    return json.loads((study_of(home) / "status" / f"{run_name}.json").read_text())


def test_one_run_a_value(home, server):
    sweep = ["-m", "+sweep=k", "pipeline.num_chunks=1,2", *asking(server)]
    run(home, "eval", "answer", *sweep)
    asked = len(server.received)
    run(home, "eval", "answer", *sweep)
    assert len(server.received) == asked > 0
    for num_chunks in (1, 2):
        folder = Path(home["TRIAX_RUNS"]) / "answer" / f"demo-k{num_chunks}"
        rows = [json.loads(line) for line in (folder / "answers.jsonl").open()]
        assert [len(row["chunk_ids"]) for row in rows] == [num_chunks] * 3
        assert status_of(home, f"demo-k{num_chunks}")["state"] == "finished"
    gone = run(home, "eval", "study", "study=demo", check=False)
    assert gone.returncode and "2 of 2 runs are not scored" in gone.stderr
    assert "- demo-k2: answered in part or in full, not scored" in gone.stderr
    run(home, "eval", "score", *sweep)
    done = run(home, "eval", "study", "study=demo")
    assert "2 runs, varied: pipeline.num_chunks" in done.stdout
    study = study_of(home)
    rows = [json.loads(line) for line in (study / "table.jsonl").open()]
    assert [row["settings"] for row in rows] == [{"pipeline.num_chunks": k} for k in (1, 2)]
    for row in rows:
        scored = Path(home["TRIAX_RUNS"]) / "answer" / row["run"] / "metrics.json"
        assert row["answer/f1"] == json.loads(scored.read_text())["answer/f1"]
    assert "num_chunks=2" in (study / "table.md").read_text()
    assert "pipeline.num_chunks</text>" in (study / "figure.svg").read_text()
    gone = run(home, "eval", "study", "study=other", check=False)
    assert gone.returncode and "no run of study other" in gone.stderr and "['demo']" in gone.stderr


def test_a_plan_is_run_by_tasks_of_an_array_and_by_an_agent(home, server, tmp_path):
    """One task takes the second of two values; an agent gets a value that is added, and cannot."""
    planned = run(
        home, "eval", "plan_sweep", "+sweep=k", "pipeline.num_chunks=1,2", *asking(server)
    )
    manifest = study_of(home) / "manifest.jsonl"
    assert f"sbatch --array=0-1 slurm/sweep_array.sbatch {manifest}" in planned.stdout
    assert "not built" not in planned.stdout  # BM25 needs no index
    settings = [json.loads(line)["settings"] for line in manifest.open()]
    assert settings == [{"pipeline.num_chunks": 1}, {"pipeline.num_chunks": 2}]
    task = {"SLURM_ARRAY_TASK_ID": "8", "SLURM_ARRAY_TASK_MIN": "7", "SLURM_ARRAY_TASK_COUNT": "2"}
    task |= {"SLURM_ARRAY_JOB_ID": "4711", "SLURM_JOB_ID": "4712", "SLURM_RESTART_COUNT": "1"}
    done = run(home | task, "eval", "run_jobs", f"manifest={manifest}")
    assert "job 1 (1 of 1 here): demo-k2" in done.stdout
    status = status_of(home, "demo-k2")
    assert (status["state"], status["program"]) == ("finished", "score")
    assert (status["attempt"]["job"], status["attempt"]["restart"]) == ("4711_8", 1)
    # The plan grows, and W&B gets the same values.
    run(home, "eval", "plan_sweep", "+sweep=k", "pipeline.num_chunks=many", *asking(server))
    sweep = yaml.safe_load((study_of(home) / "wandb_sweep.yaml").read_text())
    assert sweep["parameters"] == {"pipeline.num_chunks": {"values": [1, 2, "many"]}}
    assert sweep["program"] == str(ROOT / "eval" / "run_jobs.py")
    given = tmp_path / "wandb" / "sweep-abc" / "config-xyz.yaml"
    save_config_file_from_dict(str(given), {"pipeline.num_chunks": {"value": "many"}})
    agent = home | {"WANDB_SWEEP_PARAM_PATH": str(given)}
    done = run(agent, "eval", "run_jobs", *sweep["command"][3:], check=False)
    assert done.returncode == 1 and "job 2 (1 of 1 here): demo-kmany" in done.stdout
    # Without Slurm all are run: what is finished is not, what fails leaves the others.
    done = run(home, "eval", "run_jobs", f"manifest={manifest}", check=False)
    assert done.returncode == 1 and status_of(home, "demo-k2") == status
    assert status_of(home, "demo-k1")["state"] == "finished"
    gone = run(home, "eval", "study", "study=demo", check=False)
    assert gone.returncode and "1 of 3 runs are not scored" in gone.stderr
    (line,) = [line for line in gone.stderr.splitlines() if line.startswith("- demo-kmany")]
    assert "failed: answer ended with 1 in job local" in line and "TypeError" in line
    done = run(home, "eval", "study", "study=demo", "partial=true")
    assert "2 runs, varied: pipeline.num_chunks" in done.stdout
    assert "- demo-kmany: failed" in (study_of(home) / "table.md").read_text()


def test_a_plan_refuses_what_would_be_mixed_up(home):
    def refused(*overrides):
        done = run(home, "eval", "plan_sweep", *overrides, check=False)
        assert done.returncode
        return done.stderr

    sweep = ["+sweep=k", "pipeline.num_chunks=1,2", *SHARED]
    run(home, "eval", "plan_sweep", *sweep)
    assert "corpus.limit: 3 -> 4" in refused(*sweep, "corpus.limit=4")
    assert "belongs to study demo" in refused(*sweep, "study=other", "name=demo-k1")


def test_an_index_is_built_first_and_a_search_stands_on_it(home, server):
    """A plan says what is missing and how it is made; then two trials over k and N."""
    search = [*asking(server), "pipeline=t2rag", "decomposer=gold", "resolver=gold"]
    said = run(home, "eval", "plan_sweep", "+sweep=k", *search, "study=first").stdout
    lines = [line.strip() for line in said.splitlines() if "sbatch" in line]
    manifest = study_of(home, "first") / "manifest.jsonl"
    array = f"slurm/sweep_array.sbatch {manifest}"
    assert lines[0] == f"first=$(sbatch --parsable {array} prepare=true)"
    dependency = "--dependency=afterok:$first --kill-on-invalid-dep=yes"
    assert lines[1] == f"sbatch --array=0-3 {dependency} {array}"
    run(home, "eval", "run_jobs", f"manifest={manifest}", "prepare=true")
    done = run(home, "eval", "search", "+search=t2rag", *search, "search.trials=2")
    best = json.loads((study_of(home) / "best.json").read_text())
    assert f"best of 2 trials: {best['run']}" in done.stdout
    run(home, "eval", "study", "study=demo")
    rows = [json.loads(line) for line in (study_of(home) / "table.jsonl").open()]
    assert {row["run"] for row in rows} == {"demo-000", "demo-001"}
    assert best["answer/f1"] == max(row["answer/f1"] for row in rows)
    assert "best so far" in (study_of(home) / "figure.svg").read_text()


@pytest.mark.parametrize("name", SWEEPS)
def test_what_is_swept_is_a_setting_and_names_its_run(name):
    """An unknown key, or two values under one name, would fail only once the runs are queued."""
    given = [f"+sweep={name}", *(["name=x"] if name == "rewritten" else [])]
    for key, values in (load(*given).hydra.sweeper.params or {}).items():
        names = {load(*given, f"{key}={value}").name for value in values.split(",")}
        assert len(names) == len(values.split(",")) > 1


@pytest.mark.parametrize("path", sorted((ROOT / "conf" / "search").glob("*.yaml")), ids=str)
def test_what_is_searched_is_a_setting(path):
    space = load(f"+search={path.stem}", "name=x", "study=x").search.space
    for key, distribution in space.items():
        found = instantiate(distribution)
        for value in getattr(found, "choices", None) or (found.low, found.high):
            assert load(f"+search={path.stem}", "name=x", "study=x", f"{key}={value}")


def test_a_launcher_knows_its_keys_and_takes_the_site_from_the_environment(monkeypatch):
    """Hydra refuses a key that the installed launcher has not."""
    monkeypatch.setenv("TRIAX_PARTITION", "scavenge")
    monkeypatch.setenv("TRIAX_MEM_GB", "64")
    found = load("name=x", "hydra/launcher=slurm").hydra.launcher
    assert found["_target_"].endswith("SlurmLauncher")
    assert (found.partition, found.account, found.mem_gb) == ("scavenge", None, 64)
    assert found.max_num_timeout >= 10  # each preemption counts as one


def test_every_question_is_rewritten_and_goes_to_the_graph():
    pipeline = load("+sweep=rewritten", "name=x").pipeline
    assert pipeline["_target_"].endswith(".Hybrid")
    assert pipeline.router.threshold < -1 and pipeline.rewrite_threshold > 1
    assert pipeline.rewriter.decomposer["_target_"] == load("name=x").decomposer["_target_"]
