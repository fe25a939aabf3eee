"""Parts are measured, taken up again and compared, through a real socket."""

import gzip
import json
import sys
from pathlib import Path

import pytest
from running import ROOT, run

sys.path[:0] = [str(ROOT / "tests" / "llm"), str(ROOT / "slurm")]

from fake_server import FakeServer  # noqa: E402
from llama_server import find_gguf  # noqa: E402

JOBS = {"Ann Lee": "painter", "Bo Ray": "singer", "Cy Fox": "poet", "Di Orr": "pilot"}


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    folder = tmp_path_factory.mktemp("parts")
    (folder / "data" / "popqa").mkdir(parents=True)
    with gzip.open(folder / "data" / "popqa" / "dev.jsonl.gz", "wt", encoding="utf-8") as stream:
        for number, (name, job) in enumerate(JOBS.items()):
            row = {
                "id": f"p{number}",
                "question": f"What is {name}'s occupation?",
                "answer": job,
                "answer_aliases": [],
                "query_triples": [[name, "occupation", "?1"]],
                "paragraphs": [{"title": name, "text": f"{name} was a {job}."}],
            }
            stream.write(json.dumps(row) + "\n")
    places = {"TRIAX_RUNS": "runs", "TRIAX_CACHE": "cache", "TRIAX_DATA": "data"}
    return {key: str(folder / name) for key, name in places.items()} | {"HOME": str(folder)}


def reads(body):
    """Knows what the passages say of two people, and makes something up for the others."""
    asked = body["messages"][-1]["content"]
    if asked.startswith("Question:"):
        return "X | occupation | ?1"
    name = asked.rpartition("\n\n")[2].partition(" | ")[0]
    if name in ("Ann Lee", "Bo Ray"):
        return JOBS[name] if f"{name} was" in asked else "not found"
    return "someone"


def test_a_resolver_is_measured_and_compared(home):
    shared = ["part=resolve", "set=popqa", "num_passages=3", "llm=http", "llm.model=fake"]
    with FakeServer(reads) as server:
        shared.append(f"llm.base_url={server.base_url}")
        done = run(home, "eval", "parts", *shared, "name=first")
        num_calls = len(server.received)
        run(home, "eval", "parts", *shared, "name=first")
        assert num_calls == 8 and len(server.received) == num_calls
        refused = run(home, "eval", "parts", *shared, "name=first", "limit=2", check=False)
        assert refused.returncode != 0 and "another configuration" in refused.stderr
    with FakeServer(lambda body: "painter") as server:
        shared[-1] = f"llm.base_url={server.base_url}"
        run(home, "eval", "parts", *shared, "name=second")
    metrics = json.loads(
        (Path(home["TRIAX_RUNS"]) / "parts" / "first" / "metrics.json").read_text()
    )
    # Two of four are right; of the four without their passage two were told so, and no other was.
    assert metrics["resolve/em"] == 0.5 and metrics["count/not_here"] == 4
    assert (metrics["not_here/precision"], metrics["not_here/recall"]) == (1.0, 0.5)
    assert metrics["cost/calls"] == 1.0 and '"items": 8' in done.stdout
    lines = run(home, "eval", "compare", "first=first", "second=second").stdout.splitlines()
    found = {row["field"]: row for row in map(json.loads, lines)}
    assert found["em"]["items"] == 4 and found["right"]["items"] == 8
    # Right: 2 + 2 of 8 against 1 of 8.
    assert found["em"]["difference"] == 0.25 and found["right"]["difference"] == 0.375
    missing = run(home, "eval", "compare", "first=first", "second=third", check=False)
    assert missing.returncode != 0 and "'first', 'second'" in missing.stderr
    run(home, "eval", "pool", "name=both", "runs=[first,second]")
    folder = Path(home["TRIAX_RUNS"]) / "parts"
    pooled = json.loads((folder / "both" / "pooled.json").read_text())["metrics"]
    # Three of eight are right.
    assert pooled["resolve/em"] == 0.375 and pooled["count/here"] == 8
    missing = run(home, "eval", "pool", "name=both", "runs=[first,third]", check=False)
    assert missing.returncode != 0 and "'first', 'second'" in missing.stderr


def test_a_decomposer_is_measured(home):
    options = ["part=decompose", "set=popqa", "llm=http", "llm.model=fake", "limit=2"]
    with FakeServer(reads) as server:
        run(home, "eval", "parts", *options, f"llm.base_url={server.base_url}")
    folder = Path(home["TRIAX_RUNS"]) / "parts" / "decompose-popqa-few_shot-fake-n2"
    metrics = json.loads((folder / "metrics.json").read_text())
    assert metrics["decompose/parsed"] == 1.0 and metrics["decompose/equal"] == 0.0
    other = run(home, "eval", "pool", "name=x", f"runs=[{folder.name}]", check=False)
    assert other.returncode != 0 and "no measured resolution" in other.stderr
    run(home, "eval", "parts", "part=decompose", "set=popqa", "decomposer=gold")
    folder = Path(home["TRIAX_RUNS"]) / "parts" / "decompose-popqa-gold"
    assert json.loads((folder / "metrics.json").read_text())["decompose/equal"] == 1.0


def test_a_server_finds_its_file(tmp_path):
    with pytest.raises(FileNotFoundError, match="expected one .gguf"):
        find_gguf(str(tmp_path))
    (tmp_path / "m.gguf").touch()
    assert find_gguf(str(tmp_path)) == find_gguf(str(tmp_path / "m.gguf")) == tmp_path / "m.gguf"
