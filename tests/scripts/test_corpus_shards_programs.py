"""A corpus in shards without a cluster: the scripts as plain bash, and what they would submit."""

import json
import os
import shutil
import subprocess
import sys

import pytest
from running import ROOT, run

sys.path.insert(0, str(ROOT / "tests" / "llm"))

from fake_server import FakeServer

SETTINGS = ["corpus=demo", "extractor=sentences", "encoder=hashing"]


def bash(home, script, *arguments, **environment):
    return subprocess.run(
        ["bash", f"slurm/{script}", *arguments],
        cwd=ROOT,
        env=os.environ | home | environment,
        capture_output=True,
        text=True,
        timeout=300,
    )


@pytest.fixture
def home(tmp_path):
    places = {"TRIAX_RUNS": "runs", "TRIAX_ARTIFACTS": "artifacts", "TRIAX_CACHE": "cache"}
    (tmp_path / "site.env").write_text(f"TRIAX_VENV={sys.prefix}\n")
    return {key: str(tmp_path / name) for key, name in places.items()} | {
        "HOME": str(tmp_path),
        "TRIAX_SITE": str(tmp_path / "site.env"),
    }


def test_on_a_machine_without_slurm_all_of_it_runs_here(home, tmp_path):
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "bash").symlink_to(shutil.which("bash"))
    settings = [*SETTINGS, "shard_size=50"]
    done = bash(home, "corpus.sh", "3", *settings, PATH=str(tmp_path / "bin"))
    assert done.returncode == 0, done.stderr[-3000:]
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert rows[0]["shards"] == 3 and rows[-1]["chunks"] == 130
    made = [row["made"] for row in rows if "made" in row and "failed" in row]
    assert made == [[0, 1, 2]]
    alone = home | {"TRIAX_ARTIFACTS": str(tmp_path / "alone")}
    for program in ("extract", "index"):
        run(alone, "eval", program, *SETTINGS)
    for kind, names in {
        "triplets": {"triplets.jsonl", "extractions.jsonl", "manifest.json", "config.json"},
        "index": {"propositions.parquet", "vectors.npy", "chunk_vectors.npy", "manifest.json"},
    }.items():
        (here,) = (tmp_path / "alone" / kind / "demo").iterdir()
        shared = tmp_path / "artifacts" / kind / "demo" / here.name
        for name in names:
            assert (shared / name).read_bytes() == (here / name).read_bytes(), name
    status = [
        json.loads(line)
        for line in run(home, "eval", "shard_status", *SETTINGS).stdout.splitlines()
    ]
    assert [(row["stage"], row["done"], row["is_merged"]) for row in status] == [
        ("extract", 3, True),
        ("embed", 2, True),
    ]
    again = bash(home, "plan.sbatch", *SETTINGS, "shard_size=40")
    assert again.returncode == 1 and "shard_size: 50 there, 40 given" in again.stderr


@pytest.mark.parametrize(
    ("program", "said"),
    [
        ("extract_shards", "holds no plan; run `python eval/plan_shards.py`"),
        ("merge_shards", "holds no plan"),
        ("embed_shards", "holds no plan"),
        ("shard_status", "holds no plan"),
    ],
)
def test_without_a_plan_a_program_says_what_comes_first(home, program, said):
    done = run(home, "eval", program, *SETTINGS, check=False)
    assert done.returncode == 1 and said in done.stderr and "Traceback" not in done.stderr


def test_what_a_model_was_asked_is_in_the_cost(home):
    """Two calls a chunk; one chunk of shard 1 has no answer, and is asked about once more."""

    def reply(body):
        asked = body["messages"][-1]["content"]
        if "Stephen King" in asked:
            return "no JSON"
        kind = "triplets" if "triplets" in body["messages"][0]["content"] else "entities"
        return json.dumps({kind: ["x"] if kind == "entities" else [["x", "is", "y"]]})

    with FakeServer(reply) as server:
        settings = ["corpus=demo", "extractor=openie", "llm=http", "llm.model=fake"]
        settings += [f"llm.base_url={server.base_url}", "max_failed=0.2"]
        run(home, "eval", "plan_shards", *settings, "shard_size=70")
        assert server.received == []
        first = run(home, "eval", "extract_shards", *settings, "worker=0", "num_workers=2").stdout
        num_first = len(server.received)
        record = json.loads(first.splitlines()[0])
        assert record["usage"]["calls"] == num_first >= 140
        run(home, "eval", "extract_shards", *settings)
        merged = json.loads(run(home, "eval", "merge_shards", *settings).stdout)
        assert merged["num_chunks"] == 130 and merged["ok"] + merged["failed"] == 130
        status = run(home, "eval", "shard_status", *settings).stdout.splitlines()[0]
        assert json.loads(status)["calls"] == len(server.received) > num_first
        assert json.loads(status)["prompt_tokens"] == 11 * len(server.received)


def stand_in(folder, name, text):
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


def test_the_chain_is_submitted_each_after_the_one_before(home, tmp_path):
    log = tmp_path / "log"
    count = f'echo "$@" >> {log}; echo "10$(wc -l < {log});cluster"'
    stand_in(tmp_path / "bin", "sbatch", count)
    path = f"{tmp_path / 'bin'}:{os.environ['PATH']}"
    options = {"TRIAX_SBATCH": "--account=nlp --qos=low", "TRIAX_ARRAY": "--gpus=1", "PATH": path}
    done = bash(home, "corpus.sh", "4", "corpus=demo", "shard_size=9", **options)
    assert done.stdout.split() == "plan 101 extract 102 merge 103 embed 104 index 105".split()
    first, *rest = log.read_text().splitlines()
    settings = "corpus=demo shard_size=9"
    shared = "--parsable --account=nlp --qos=low"
    assert first == f"{shared} slurm/plan.sbatch {settings}"
    after = "--dependency=afterok:{} --kill-on-invalid-dep=yes"
    array = "--gpus=1 --array=0-3 slurm/extract_array.sbatch"
    assert rest == [
        f"{shared} {after.format(101)} {array} extract {settings}",
        f"{shared} {after.format(102)} slurm/merge.sbatch extract {settings}",
        f"{shared} {after.format(103)} {array} embed {settings}",
        f"{shared} {after.format(104)} slurm/merge.sbatch embed {settings}",
    ]


def test_a_task_of_an_array_takes_its_share_by_its_place_in_it(home, tmp_path):
    log = tmp_path / "log"
    stand_in(tmp_path / "venv" / "bin", "python", f'echo "$@" >> {log}; exit 3')
    (tmp_path / "site.env").write_text(f"TRIAX_VENV={tmp_path}/venv\n")
    array = {"SLURM_ARRAY_TASK_ID": "7", "SLURM_ARRAY_TASK_MIN": "4", "SLURM_ARRAY_TASK_COUNT": "5"}
    assert bash(home, "extract_array.sbatch", "embed", "corpus=demo", **array).returncode == 3
    assert bash(home, "extract_array.sbatch", "extract", "corpus=demo").returncode == 3
    assert bash(home, "merge.sbatch", "extract", "corpus=demo").returncode == 3
    assert log.read_text().splitlines() == [
        "eval/embed_shards.py corpus=demo worker=3 num_workers=5",
        "eval/extract_shards.py corpus=demo worker=0 num_workers=1",
        "eval/merge_shards.py stage=extract corpus=demo",
    ]


@pytest.mark.parametrize(
    ("script", "arguments"),
    [
        ("corpus.sh", ()),
        ("corpus.sh", ("0",)),
        ("corpus.sh", ("corpus=demo",)),
        ("extract_array.sbatch", ()),
        ("extract_array.sbatch", ("corpus=demo",)),
        ("merge.sbatch", ("index",)),
    ],
)
def test_a_script_says_how_it_is_called(home, script, arguments):
    done = bash(home, script, *arguments)
    assert done.returncode == 2 and "comes first" in done.stderr and done.stdout == ""
