"""Every program has a pulse: the demo corpus from text to a table, through a real socket."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from running import ROOT, run

sys.path.insert(0, str(ROOT / "tests" / "llm"))

from fake_server import FakeServer

SHARED = ["extractor=sentences", "encoder=hashing", "corpus=demo", "corpus.split=dev"]
SHARED += ["solver=small_prompted"]


def reply(body):
    """A stand-in that knows one film."""
    asked = body["messages"][-1]["content"]
    if asked.startswith("Question:") and "placeholder" in body["messages"][0]["content"]:
        return "The Last Picture Show | directed by | ?director"
    return "Peter Bogdanovich"


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    folder = tmp_path_factory.mktemp("home")
    places = {"TRIAX_RUNS": "runs", "TRIAX_ARTIFACTS": "artifacts", "TRIAX_CACHE": "cache"}
    return {key: str(folder / name) for key, name in places.items()} | {"HOME": str(folder)}


def llm(server):
    return ["llm=http", "llm.model=fake", f"llm.base_url={server.base_url}"]


def test_from_text_to_a_table(home):
    with FakeServer(reply) as server:
        done = run(home, "eval", "answer", "name=early", *SHARED, *llm(server), check=False)
        assert done.returncode != 0
        assert "run `python eval/index.py`" in done.stderr
        extracted = json.loads(run(home, "eval", "extract", *SHARED, *llm(server)).stdout)
        assert extracted["num_chunks"] == 130 and extracted["failed"] == 0
        indexed = json.loads(run(home, "eval", "index", *SHARED, *llm(server)).stdout)
        assert indexed["chunks"] == 130
        for pipeline in ("t2rag", "bm25"):
            options = [f"name={pipeline}", f"pipeline={pipeline}", *SHARED, *llm(server)]
            answered = json.loads(run(home, "eval", "answer", *options).stdout)
            assert (answered["questions"], answered["failed"]) == (20, 0)
            run(home, "eval", "score", *options)
        num_calls = len(server.received)
        run(home, "eval", "answer", "name=t2rag", "pipeline=t2rag", *SHARED, *llm(server))
        assert len(server.received) == num_calls  # all is answered: nothing is asked again
        refused = run(
            home,
            "eval",
            "answer",
            "name=t2rag",
            "pipeline=bm25",
            *SHARED,
            *llm(server),
            check=False,
        )
        assert refused.returncode != 0 and "another configuration" in refused.stderr
    table = run(home, "eval", "report", "names=[t2rag,bm25]", "baseline=bm25").stdout
    assert "| t2rag" in table and "F1 t2rag - bm25" in table
    folder = Path(home["TRIAX_RUNS"]) / "answer" / "t2rag"
    traces = [json.loads(line) for line in (folder / "traces.jsonl").read_text().splitlines()]
    assert all(trace["usage"]["calls"] >= 3 for trace in traces)
    assert len((folder / "run.trec").read_text().splitlines()) >= 20


def test_r04_a_killed_run_asks_nothing_twice(home):
    with FakeServer(reply) as probe:
        run(home, "eval", "extract", *SHARED, *llm(probe))
        run(home, "eval", "index", *SHARED, *llm(probe))
    with FakeServer(lambda body: reply(body) + " again", latency_s=0.3) as server:
        options = ["name=killed", "pipeline=closed_book", "batch_size=2", "llm.max_concurrent=2"]
        command = [
            sys.executable,
            str(ROOT / "eval" / "answer.py"),
            *options,
            *SHARED,
            *llm(server),
        ]
        process = subprocess.Popen(
            command, env=os.environ | home, cwd=home["HOME"], stderr=subprocess.DEVNULL
        )
        log = Path(home["TRIAX_RUNS"]) / "answer" / "killed" / "traces.jsonl"
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline and not (log.exists() and log.stat().st_size):
            time.sleep(0.02)
        process.send_signal(signal.SIGKILL)
        process.wait()
        finished = len(log.read_text().splitlines())
        assert 0 < finished < 20
        run(home, "eval", "answer", *options, *SHARED, *llm(server))
        asked = [body["messages"][-1]["content"] for body in server.bodies]
        # At most the calls that were under way when it died went out twice.
        assert len(asked) - len(set(asked)) <= 2
        assert len(set(asked)) == 20
    assert len({json.loads(line)["question_id"] for line in log.read_text().splitlines()}) == 20
