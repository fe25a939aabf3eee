"""The triplet filters as a user turns them on: one word on the command line."""

import json
import sys
from pathlib import Path

from running import ROOT, run

sys.path.insert(0, str(ROOT / "tests" / "llm"))

from fake_server import FakeServer

SHARED = ["corpus=demo", "corpus.split=dev", "corpus.limit=4"]
SHARED += ["extractor=sentences", "encoder=hashing", "reader=prompted"]


def reply(body):
    """Picks the first triplet that it is shown, and otherwise answers."""
    last = body["messages"][-1]["content"]
    if last.startswith("Question:") and last.count("\n") == 1:
        shown = json.loads(last.split("\n")[1])["triplets"]
        return json.dumps({"triplets": shown[:1]})
    return "Peter Bogdanovich"


def test_a_language_model_filters_and_is_in_the_ledger(tmp_path):
    places = {"TRIAX_RUNS": "runs", "TRIAX_ARTIFACTS": "artifacts", "TRIAX_CACHE": "cache"}
    home = {key: str(tmp_path / name) for key, name in places.items()} | {"HOME": str(tmp_path)}
    with FakeServer(reply) as server:
        llm = ["llm=http", "llm.model=fake", f"llm.base_url={server.base_url}"]
        options = ["systems=[graph,graph_unfiltered]", "baseline=graph_unfiltered", *SHARED, *llm]
        done = run(home, "eval", "retrieval", "triplet_filter=asked", *options)
        assert "R@5 graph - graph_unfiltered" in done.stdout
        calls = (tmp_path / "runs/retrieval/retrieval/calls.jsonl").read_text().splitlines()
        # Four questions, their gold query triplets, and two of these with values filled in.
        asked = [json.loads(line) for line in calls]
        assert [one["stage"] for one in asked] == ["filter"] * 10
        options = ["name=asked", "pipeline=hipporag2", "triplet_filter=asked", *SHARED, *llm]
        answered = json.loads(run(home, "eval", "answer", *options).stdout)
        assert (answered["questions"], answered["failed"]) == (4, 0)
    folder = Path(home["TRIAX_RUNS"]) / "answer" / "asked"
    lines = (folder / "traces.jsonl").read_text().splitlines()
    # One call of the filter, which the cache knows by now, and one of the reader.
    assert [json.loads(line)["usage"]["calls"] for line in lines] == [2] * 4
    calls = [json.loads(line) for line in (folder / "calls.jsonl").read_text().splitlines()]
    asked = [one for one in calls if one["stage"] == "filter"]
    assert len(asked) == 4 and all(one["is_cached"] for one in asked)
