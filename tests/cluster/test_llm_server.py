"""Servers of a language model as jobs, and clients on other nodes that outlive them."""

import json
import os
import re
import signal
import sys
import urllib.request
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "llm"))

CLIENT = Path(__file__).with_name("llm_client.py")


class Home:
    """The folder of one test, with a model in it, and what its servers and clients write."""

    def __init__(self, cluster, folder, places):
        from tiny_gguf import write_tiny_gguf

        self.cluster = cluster
        self.folder = folder
        self.model = str(write_tiny_gguf(folder / "tiny.gguf"))
        self.endpoints = folder / "endpoints"
        self.env = places | {"TRIAX_ENDPOINTS": self.endpoints, "WAIT_S": 100}
        self.jobs = []

    def serve(self, *options):
        job = self.cluster.submit(
            "llm_server.sbatch",
            self.model,
            "--parallel=2",
            options=["--gpus=0", *options],
            folder=self.folder,
            ENGINE="llama",
            **self.env,
        )
        self.jobs.append(job)
        return job

    def endpoint(self, name, restart=0):
        """What the file of a server says, once it is there."""
        path = self.endpoints / f"{name}.json"

        def read():
            row = json.loads(path.read_text()) if path.exists() else {}
            return row if row.get("restart") == restart else None

        return self.cluster.until(read, f"server {name} is there")

    def ask(self, name, count, *job, options=(), **environment):
        script = self.folder / "client.sbatch"
        script.write_text(
            f'#!/bin/bash\ncd {self.folder}\nexec "$TRIAX_VENV/bin/python" {CLIENT} "$@"\n'
        )
        arguments = (script, self.model, name, count, *job)
        found = self.cluster.submit(
            *arguments, options=options, folder=self.folder, **(self.env | environment)
        )
        self.jobs.append(found)
        return found

    def rows(self, name):
        path = self.folder / name
        lines = path.read_text().splitlines() if path.exists() else []
        return [json.loads(line) for line in lines]

    def check_answers(self, name, count):
        """Each question has the answer that its own grammar asks for; returns the hosts."""
        rows = self.rows(f"{name}.jsonl")
        assert [row["number"] for row in rows] == list(range(count)), self.said(name)
        for row in rows:
            assert row["error"] is None
            assert re.fullmatch(f"[a-z]{{40}} {row['number']}", row["text"])
        return {row["host"] for row in rows}

    def paid(self, name):
        """The questions that a server was really asked, by the ledger."""
        rows = self.rows(f"{name}.calls.jsonl")
        return [int(row["question_id"]) for row in rows if not row["is_cached"]]

    def said(self, pattern):
        return "".join(path.read_text() for path in self.folder.glob(f"*{pattern}*.out"))


@pytest.fixture
def home(cluster, tmp_path, places):
    pytest.importorskip("xllamacpp")
    found = Home(cluster, tmp_path, places)
    yield found
    cluster.call("scancel", *found.jobs, check=False)


def server_process(row):
    """The pid of the server of an endpoint file; all nodes are on this machine."""
    port = row["base_url"].rpartition(":")[2].removesuffix("/v1")
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().decode().split("\0")
        except OSError:
            continue
        if "slurm/llama_server.py" in words and port in words:
            return int(path.parent.name)
    raise AssertionError(f"no server at port {port}")


def test_an_array_of_clients_asks_a_server_on_another_node(cluster, home):
    clients = home.ask("array", 8, options=["--array=0-1", "--nodelist=n2"])
    server = home.serve("--nodelist=n1")
    row = home.endpoint(server)
    assert row["model"] == home.model and row["job"] == server
    assert row["host"] == "n1" and row["base_url"].startswith("http://n1:")
    assert cluster.wait(clients) == ["COMPLETED"] * 2, home.said("client")
    for name in ("array-0", "array-1"):
        assert home.check_answers(name, 8) == {"n2"}
    # A minute before its end it takes no more, but serves what it has.
    cluster.call("scancel", "--batch", "--signal=USR1", server)
    cluster.until(lambda: not (home.endpoints / f"{server}.json").exists(), "it withdraws")
    assert cluster.states(server) == ["RUNNING"]
    cluster.call("srun", "--mem=100", "curl", "--fail", row["base_url"] + "/models")
    cluster.call("scancel", server)
    assert cluster.wait(server) == ["CANCELLED"]
    assert list(home.endpoints.iterdir()) == []


def test_a_run_asks_the_servers_and_a_later_one_its_cache(cluster, home):
    settings = ["corpus=demo", "corpus.limit=3", "extractor=sentences", "encoder=hashing"]
    settings += [
        "pipeline=bm25",
        "pipeline.num_chunks=1",
        "solver=small_prompted",
        "llm=servers",
        f"llm.model={home.model}",
    ]
    # Free text of random weights is no UTF-8: everything is to be six letters.
    settings += ["+llm.structured=none", '+llm.extra_body={grammar: "root ::= [a-z]{6}"}']
    server = home.serve("--nodelist=n1")
    job = cluster.submit(
        "answer.sbatch",
        "name=one",
        *settings,
        options=["--nodelist=n2"],
        folder=home.folder,
        TRIAX_SERVER_JOB=server,
        **home.env,
    )
    assert cluster.wait(job) == ["COMPLETED"], home.said("answer")
    runs = home.folder / "runs" / "answer"
    calls = home.rows(runs / "one" / "calls.jsonl")
    assert calls and not any(row["is_cached"] or row["error"] for row in calls)
    cluster.call("scancel", server)
    cluster.wait(server)
    home.env["TRIAX_ENDPOINTS"] = home.folder / "elsewhere"
    script = home.folder / "answer.sbatch"
    script.write_text('#!/bin/bash\nexec "$TRIAX_VENV/bin/python" eval/answer.py "$@"\n')
    job = cluster.submit(script, "name=two", *settings, folder=home.folder, **home.env)
    assert cluster.wait(job) == ["COMPLETED"], home.said("answer")
    again = home.rows(runs / "two" / "calls.jsonl")
    assert len(again) == len(calls) and all(row["is_cached"] for row in again)
    answers = [
        [row["answer"] for row in home.rows(runs / one / "answers.jsonl")] for one in ("one", "two")
    ]
    assert answers[0] == answers[1] and all(re.fullmatch("[a-z]{6}", one) for one in answers[0])
    assert len(answers[0]) == 3


def test_when_one_of_two_servers_dies_the_other_goes_on(cluster, home):
    count = 160
    servers = home.serve("--array=0-1", "--nodelist=n1")
    rows = [home.endpoint(f"{servers}_{task}") for task in range(2)]
    client = home.ask("over", count, servers, options=["--nodelist=n3"])
    cluster.until(lambda: len(home.paid("over-0")) >= 20, "the client asks")
    os.kill(server_process(rows[0]), signal.SIGKILL)
    cluster.until(lambda: not (home.endpoints / f"{servers}_0.json").exists(), "it withdraws")
    assert len(home.paid("over-0")) < count, "the server died too late to say anything"
    assert cluster.wait(client) == ["COMPLETED"], home.said("client")
    assert home.check_answers("over-0", count) == {"n3"}
    assert sorted(home.paid("over-0")) == list(range(count))
    assert f"{servers}_0.json (n1) is set aside" in home.said("client")
    states = {one["ArrayTaskId"]: one["JobState"] for one in cluster.jobs(servers)}
    assert states == {"0": "FAILED", "1": "RUNNING"}
    assert "error: the server ended with 137" in home.said("llm")


def test_without_a_server_a_client_ends_and_a_later_one_goes_on(cluster, home):
    count = 160
    first = home.serve("--nodelist=n1")
    home.endpoint(first)
    client = home.ask("on", count, first, options=["--nodelist=n2"], WAIT_S=1000)
    cluster.until(lambda: len(home.paid("on-0")) >= 20, "the client asks")
    cluster.call("scancel", first)
    assert cluster.wait(client) == ["FAILED"]
    assert list(home.endpoints.iterdir()) == []
    assert f"job {first}, which was to serve it, has ended ({first} CANCELLED)" in home.said(
        "client"
    )
    answered = home.paid("on-0")
    assert 20 <= len(answered) < count
    second = home.serve("--nodelist=n3")
    client = home.ask("on", count, second, options=["--nodelist=n2"])
    assert cluster.wait(client) == ["COMPLETED"], home.said("client")
    assert home.check_answers("on-0", count) == {"n2"}
    assert sorted(home.paid("on-0")) == list(range(count)), "each was asked once"


def test_a_requeued_server_is_there_again(cluster, home):
    server = home.serve("--nodelist=n1")
    home.endpoint(server)
    cluster.call("scontrol", "requeue", server)
    cluster.until(lambda: not (home.endpoints / f"{server}.json").exists(), "it withdraws")
    client = home.ask("again", 4, server, options=["--nodelist=n2"])
    cluster.start_again(server)
    row = home.endpoint(server, restart=1)
    health = row["base_url"].removesuffix("/v1").replace("//n1", "//10.77.0.11") + "/health"
    with urllib.request.urlopen(health) as reply:
        assert reply.status == 200
    assert cluster.wait(client) == ["COMPLETED"], home.said("client")
    home.check_answers("again-0", 4)
