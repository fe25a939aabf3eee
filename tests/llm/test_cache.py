import asyncio
import json
import os
import signal
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing
from dataclasses import replace

import pytest
from fake_server import FakeServer, error

from triax.llm import cache
from triax.llm.cache import CachedCompleter, call_of, key_of
from triax.llm.http import HttpCompleter
from triax.llm.scripted import ScriptedCompleter
from triax.records.completions import Completion, CompletionRequest, Grammar, Message
from triax.records.files import read_jsonl
from triax.records.verbs import Completer

REQUEST = CompletionRequest((Message("system", "be short"), Message("user", "a")))


def ask(text: str, **options) -> CompletionRequest:
    return CompletionRequest((Message("user", text),), **options)


def complete(completer, *requests) -> list[Completion]:
    return asyncio.run(completer.complete(requests))


def echoing() -> ScriptedCompleter:
    return ScriptedCompleter(lambda request: f"echo {request.messages[-1].content}")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "deep" / "cache.sqlite"


def test_a_hit_gives_the_call_as_it_was_made(path):
    with FakeServer() as server:
        completer = CachedCompleter(HttpCompleter("fake", server.base_url), path)
        assert isinstance(completer, Completer) and completer.model == "fake"
        first = complete(completer, ask("a"), ask("b"))
        assert not any(completion.is_cached for completion in first)
        again = complete(completer, ask("b"), ask("a"), ask("c"))
        assert len(server.received) == 3
    assert again[:2] == [replace(first[1], is_cached=True), replace(first[0], is_cached=True)]
    assert again[0].seconds == first[1].seconds > 0 and again[0].prompt_tokens == 11
    assert not again[2].is_cached
    assert (completer.num_hits, completer.num_misses) == (2, 3)


def test_a_hit_needs_neither_server_nor_key_nor_the_same_process(path, monkeypatch):
    monkeypatch.setenv("TRIAX_TEST_KEY", "sk-secret-123456")
    with FakeServer() as server:
        address = server.base_url
        complete(
            CachedCompleter(HttpCompleter("fake", address, api_key_env="TRIAX_TEST_KEY"), path),
            ask("a"),
        )
    monkeypatch.delenv("TRIAX_TEST_KEY")
    later = CachedCompleter(HttpCompleter("fake", address, api_key_env="TRIAX_TEST_KEY"), path)
    assert complete(later, ask("a"))[0].text == "echo a"
    assert b"sk-secret" not in b"".join(file.read_bytes() for file in path.parent.iterdir())


CHANGES = [
    {"messages": (Message("system", "be short"), Message("user", "b"))},
    {"messages": (Message("user", "be short"), Message("user", "a"))},
    {"messages": (Message("system", "be shorta"), Message("user", ""))},
    {"messages": (Message("user", "a"),)},
    {"max_tokens": 513},
    {"temperature": 0.1},
    {"stop": ("\n",)},
    {"stop": ("\n", "a")},
    {"seed": 0},
    {"seed": 1},
    {"grammar": Grammar("regex", "a")},
    {"grammar": Grammar("json_schema", "{}")},
    {"grammar": Grammar("regex", "{}")},
]


def test_r06_whatever_decides_the_output_decides_the_key():
    keys = [key_of(call_of({"model": "m"}, replace(REQUEST, **change))) for change in CHANGES]
    keys.append(key_of(call_of({"model": "m"}, REQUEST)))
    keys.append(key_of(call_of({"model": "n"}, REQUEST)))
    keys.append(key_of(call_of({"model": "m", "endpoint": "http://a/v1"}, REQUEST)))
    assert len(set(keys)) == len(keys)


def test_r06_labels_do_not_decide_the_key():
    key = key_of(call_of({"model": "m"}, REQUEST))
    assert key == key_of(call_of({"model": "m"}, replace(REQUEST, stage="s", question_id="q")))
    assert key_of(call_of({"a": 1, "b": 2}, REQUEST)) == key_of(call_of({"b": 2, "a": 1}, REQUEST))


def test_r06_the_key_is_the_sha256_of_sorted_json():
    # sha256sum of the same text, written out by hand.
    text = (
        '{"completer":{"model":"m"},"request":{"grammar":null,"max_tokens":512,"messages":'
        '[{"content":"\\u00e9","role":"user"}],"seed":null,"stop":[],"temperature":0.0}}'
    )
    digest = subprocess.run(["sha256sum"], input=text.encode(), capture_output=True, check=True)
    assert key_of(call_of({"model": "m"}, ask("é"))) == digest.stdout.decode().split()[0]


def test_equal_requests_of_a_call_are_sent_once(path):
    inner = echoing()
    completions = complete(
        CachedCompleter(inner, path), ask("a", stage="x"), ask("b"), ask("a", stage="y"), ask("a")
    )
    assert [completion.text for completion in completions] == ["echo a", "echo b"] + ["echo a"] * 2
    assert [completion.is_cached for completion in completions] == [False, False, True, True]
    assert len(inner.requests) == 2


def test_failed_calls_are_not_kept(path):
    answers = ["__RAISE__ down", "fine"]
    completer = CachedCompleter(ScriptedCompleter(answers), path)
    assert complete(completer, ask("a"))[0].error == "down"
    assert complete(completer, ask("a"))[0] == Completion("fine", "stop", 1, 1)
    assert complete(completer, ask("a"))[0].is_cached


def test_a_text_cut_at_the_limit_is_kept_as_such(path):
    class Cut(ScriptedCompleter):
        def _one(self, request):
            return replace(super()._one(request), finish_reason="length", seconds=1.5)

    completer = CachedCompleter(Cut(["half"]), path)
    complete(completer, ask("a"))
    assert complete(completer, ask("a")) == [Completion("half", "length", 1, 1, 1.5, True)]


@pytest.mark.parametrize("text", ["", "\x00", "\ud800", "naïve 中文 😀", "'; DROP TABLE calls; --"])
def test_r07_any_text_can_be_asked_and_kept(path, text):
    inner = ScriptedCompleter(lambda request: text)
    completer = CachedCompleter(inner, path)
    complete(completer, ask(text))
    assert complete(completer, ask(text))[0].text == text
    assert len(inner.requests) == 1


def test_results_are_stored_when_they_arrive(path):
    def answer(request):
        if request.messages[-1].content == "3":
            raise KeyboardInterrupt
        return "x"

    with pytest.raises(KeyboardInterrupt):
        complete(CachedCompleter(ScriptedCompleter(answer), path), *(ask(str(i)) for i in range(5)))
    again = echoing()
    complete(CachedCompleter(again, path), *(ask(str(i)) for i in range(5)))
    assert [request.messages[-1].content for request in again.requests] == ["3", "4"]


def test_a_completer_that_works_in_batches_loses_one_at_most(path):
    class Batching:
        model = "batching"
        identity = {"model": "batching"}
        batch_size = 2

        def __init__(self, dies_at: str = "") -> None:
            self.asked: list[str] = []
            self.dies_at = dies_at

        async def complete(self, requests):
            texts = [request.messages[-1].content for request in requests]
            if self.dies_at in texts:
                raise MemoryError
            self.asked += texts
            return [Completion(text) for text in texts]

    requests = [ask(str(i)) for i in range(7)]
    with pytest.raises(MemoryError):
        complete(CachedCompleter(Batching("5"), path), *requests)
    again = Batching()
    assert [
        completion.text for completion in complete(CachedCompleter(again, path), *requests)
    ] == [str(i) for i in range(7)]
    assert again.asked == ["4", "5", "6"]


def test_a_completer_without_identity_is_refused(path):
    class Anonymous:
        model = "m"

        async def complete(self, requests):
            return []

    with pytest.raises(TypeError, match="Anonymous has no mapping `identity`"):
        CachedCompleter(Anonymous(), path)


def execute(path, statement):
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        return connection.execute(statement).fetchall()


def text_file(path):
    path.write_text("not a database, but long enough to have what could be a header" * 3)


def other_database(path):
    execute(path, "CREATE TABLE calls (key, completion)")


def empty_database_of_another(path):
    execute(path, "PRAGMA application_id = 7")


def later_version(path):
    CachedCompleter(echoing(), path).close()
    execute(path, "PRAGMA user_version = 99")


@pytest.mark.parametrize(
    "make, reason",
    [
        (text_file, "some other file"),
        (other_database, "no call cache"),
        (empty_database_of_another, "no call cache"),
        (later_version, "version 99, expected 1"),
        (lambda path: path.mkdir(), "cannot be opened"),
    ],
)
def test_r28_a_file_that_is_no_cache_of_this_version_is_refused_and_left_alone(
    tmp_path, make, reason
):
    path = tmp_path / "cache.sqlite"
    make(path)
    before = path.read_bytes() if path.is_file() else None
    with pytest.raises(ValueError, match=reason) as caught:
        CachedCompleter(echoing(), path)
    assert str(path) in str(caught.value)
    assert before is None or path.read_bytes() == before


def test_an_empty_file_becomes_a_cache(tmp_path):
    path = tmp_path / "cache.sqlite"
    path.touch()
    complete(CachedCompleter(echoing(), path), ask("a"))
    assert complete(CachedCompleter(echoing(), path), ask("a"))[0].is_cached


def test_purge_and_export(path, tmp_path):
    completer = CachedCompleter(echoing(), path)
    complete(completer, ask("a", stage="extract"), ask("b", stage="solve"), ask("c", stage="solve"))
    assert completer.export_jsonl(tmp_path / "calls.jsonl") == 3
    rows = {row["completion"]["text"]: row for row in read_jsonl(tmp_path / "calls.jsonl")}
    assert rows["echo a"]["stage"] == "extract"
    assert rows["echo a"]["call"]["request"]["messages"] == [{"role": "user", "content": "a"}]
    assert rows["echo a"]["key"] == key_of(rows["echo a"]["call"])
    assert completer.purge(lambda row: row["stage"] == "solve") == 2
    assert [row["completion"]["text"] for row in completer.rows()] == ["echo a"]
    assert not complete(completer, ask("b"))[0].is_cached


def test_a_closed_cache_opens_again(path):
    completer = CachedCompleter(echoing(), path)
    complete(completer, ask("a"))
    completer.close()
    assert complete(completer, ask("a"))[0].is_cached


WRITER = """
import asyncio, sys
from triax.llm.cache import CachedCompleter
from triax.llm.scripted import ScriptedCompleter
from triax.records.completions import CompletionRequest, Message
print("ready", flush=True)
sys.stdin.readline()
inner = ScriptedCompleter(lambda request: "echo " + request.messages[-1].content)
completer = CachedCompleter(inner, sys.argv[1])
requests = [CompletionRequest((Message("user", str(n)),)) for n in range(int(sys.argv[2]))]
for n in range(0, len(requests), 10):
    out = asyncio.run(completer.complete(requests[n : n + 10]))
    assert [c.text for c in out] == ["echo " + str(m) for m in range(n, n + 10)]
assert completer.num_unsaved == 0
"""


def test_r30_two_processes_share_a_new_cache(path):
    def start():
        return subprocess.Popen(
            [sys.executable, "-c", WRITER, str(path), "300"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    writers = [start(), start(), start()]
    for writer in writers:
        assert writer.stdout.readline() == "ready\n"
    for writer in writers:
        writer.stdin.write("\n")
        writer.stdin.flush()
    assert [writer.wait(60) for writer in writers] == [0, 0, 0]
    assert execute(path, "PRAGMA integrity_check") == [("ok",)]
    completer = CachedCompleter(echoing(), path)
    assert len(list(completer.rows())) == 300
    assert all(
        completion.is_cached for completion in complete(completer, *map(ask, map(str, range(300))))
    )
    for writer in writers:
        writer.stdin.close()
        writer.stdout.close()


def test_r30_a_cache_that_stays_locked_costs_one_wait_and_no_result(path, monkeypatch, caplog):
    monkeypatch.setattr(cache, "_BUSY_S", 0.05)
    completer = CachedCompleter(echoing(), path)
    holder = sqlite3.connect(path, isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    completions = complete(completer, *(ask(str(i)) for i in range(40)))
    assert [completion.text for completion in completions] == [f"echo {i}" for i in range(40)]
    assert completer.num_unsaved == 40
    assert len([record for record in caplog.records if "not stored" in record.message]) == 1
    holder.execute("COMMIT")
    holder.close()
    complete(completer, ask("0"))
    assert complete(completer, ask("0"))[0].is_cached and completer.num_unsaved == 40


KILLED = """
import asyncio, sys
from triax.llm.cache import CachedCompleter
from triax.llm.http import HttpCompleter
from triax.records.completions import CompletionRequest, Message
completer = CachedCompleter(HttpCompleter("fake", sys.argv[1], max_concurrent=4), sys.argv[2])
requests = [CompletionRequest((Message("user", str(n)),)) for n in range(40)]
asyncio.run(completer.complete_each(requests, lambda n, completion: print(n, flush=True)))
"""


def test_r04_a_killed_run_repeats_no_finished_call(path):
    is_killed = threading.Event()

    def fault(body, before):
        if len(server.received) > 20:
            assert is_killed.wait(30)

    with FakeServer(fault=fault) as server:
        command = [sys.executable, "-c", KILLED, server.base_url, str(path)]
        child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        finished = [child.stdout.readline().strip() for _ in range(13)]
        os.kill(child.pid, signal.SIGKILL)
        finished += child.stdout.read().split()
        child.stdout.close()
        child.wait(30)
        is_killed.set()
        assert 13 <= len(finished) < 40
        num_before = len(server.received)
        subprocess.run(command, check=True, capture_output=True, timeout=60)
        repeated = set(server.prompts()[num_before:])
        assert not repeated & set(finished)
    assert len(list(CachedCompleter(echoing(), path).rows())) == 40


def test_r23_errors_of_the_server_do_not_enter_the_file(path, monkeypatch):
    monkeypatch.setenv("TRIAX_TEST_KEY", "sk-secret-123456")
    with FakeServer(fault=lambda *_: error(400, "sk-secret-123456 is bad")) as server:
        inner = HttpCompleter("fake", server.base_url, api_key_env="TRIAX_TEST_KEY")
        completer = CachedCompleter(inner, path)
        [completion] = complete(completer, ask("a"))
    assert "sk-secret" not in completion.error and list(completer.rows()) == []
    assert json.loads(json.dumps(dict(completer.identity))) == inner.identity


def test_r30_a_forked_process_opens_the_file_anew(path):
    completer = CachedCompleter(echoing(), path)
    complete(completer, ask("a"))
    child = os.fork()
    if child == 0:
        try:
            hit, miss = complete(completer, ask("a"), ask("b"))
            os._exit(0 if hit.is_cached and not miss.is_cached else 1)
        finally:
            os._exit(2)
    assert os.waitpid(child, 0)[1] == 0
    assert [completion.is_cached for completion in complete(completer, ask("a"), ask("b"))] == [
        True,
        True,
    ]
