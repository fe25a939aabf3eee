"""All systems over the demo corpus by one command, with a stand-in for the language model."""

import json
import sys

from running import ROOT, run

from triax.records.files import read_jsonl

sys.path.insert(0, str(ROOT / "tests" / "llm"))

from fake_server import FakeServer

SHARED = ["extractor=sentences", "encoder=hashing", "corpus=demo", "corpus.split=dev"]
SHARED += ["corpus.limit=3", "solver=small_prompted", "name=all", "llm=http", "llm.model=fake"]


def reply(body):
    """Decomposes every question alike, and knows one name."""
    if "placeholder" in body["messages"][0]["content"]:
        return "The Last Picture Show | directed by | ?director"
    return "Peter Bogdanovich"


def test_one_that_fails_leaves_the_others_and_nothing_is_asked_twice(tmp_path):
    places = {"TRIAX_RUNS": "runs", "TRIAX_ARTIFACTS": "artifacts", "TRIAX_CACHE": "cache"}
    home = {key: str(tmp_path / name) for key, name in places.items()} | {"HOME": str(tmp_path)}
    broken = "+systems.broken=['pipeline=dense','pipeline.num_chunk=1']"
    chosen = "only=[closed_book, dense, t2rag, broken]"
    with FakeServer(reply) as server:
        options = [*SHARED, f"llm.base_url={server.base_url}", broken, chosen]
        done = run(home, "eval", "systems", *options, check=False)
        assert done.returncode == 1
        asked = len(server.received)
        again = run(home, "eval", "systems", *options, "baseline=dense", check=False)
        assert len(server.received) == asked
    assert "broken failed: " in done.stdout and "pipeline.num_chunk" in done.stdout
    found = json.loads(done.stdout.splitlines()[-1])
    assert (found["systems"], found["failed"]) == (3, 1)
    rows = {row["system"]: row for row in read_jsonl(tmp_path / "runs/systems/all/table.jsonl")}
    assert list(rows) == ["closed_book", "dense", "t2rag"]
    assert "difference" in rows["t2rag"] and "difference" not in rows["dense"]
    assert rows["closed_book"]["cost/calls"] == 1 and rows["t2rag"]["cost/calls"] >= 2
    # No model has read the corpus.
    assert rows["t2rag"]["cost/index_tokens"] == 0
    assert "F1 of dense is taken" in again.stdout
