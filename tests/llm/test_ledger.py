import asyncio
import json
import subprocess
import sys

from fake_server import FakeServer, error

from triax.llm.cache import CachedCompleter
from triax.llm.http import HttpCompleter
from triax.llm.ledger import Ledger, LedgerCompleter, read_usage, usage_of
from triax.llm.scripted import ScriptedCompleter
from triax.records.completions import Completion, CompletionRequest, Message
from triax.records.files import read_jsonl
from triax.records.usage import Usage
from triax.records.verbs import Completer


def ask(text: str, stage: str = "solve", question_id: str = "q1") -> CompletionRequest:
    return CompletionRequest((Message("user", text),), stage=stage, question_id=question_id)


def test_usage_by_hand():
    completions = [
        Completion("a", "stop", 10, 3, 0.5),
        Completion("a", "stop", 10, 3, 0.5, is_cached=True),
        Completion(None, "error", 7, 0, 0.25, error="no"),
    ]
    assert usage_of(completions) == Usage(3, 1, 27, 6, 1.25)
    assert usage_of([]) == Usage()


def test_sums_by_stage_question_and_kind():
    ledger = Ledger()
    ledger.record(ask("x", "decompose", "q1"), Completion("a", "stop", 1, 10, 0.5), "m")
    ledger.record(ask("x", "solve", "q1"), Completion("a", "stop", 2, 20, 0.5), "m")
    ledger.record(ask("x", "solve", "q2"), Completion("a", "stop", 4, 40, 0.5, True), "m")
    assert ledger.usage() == Usage(3, 1, 7, 70, 1.5)
    assert ledger.by_stage() == {
        "decompose": Usage(1, 0, 1, 10, 0.5),
        "solve": Usage(2, 1, 6, 60, 1.0),
    }
    assert ledger.by_question() == {"q1": Usage(2, 0, 3, 30, 1.0), "q2": Usage(1, 1, 4, 40, 0.5)}
    assert ledger.by_question(is_cached=False) == {"q1": Usage(2, 0, 3, 30, 1.0)}
    assert ledger.usage(is_cached=True) == Usage(1, 1, 4, 40, 0.5)
    assert ledger.usage(stage="solve", question_id="q1") == Usage(1, 0, 2, 20, 0.5)
    assert ledger.usage(stage="none") == Usage()


def test_a_line_a_call_with_what_it_cost(tmp_path):
    path = tmp_path / "run" / "calls.jsonl"
    completer = LedgerCompleter(ScriptedCompleter(["un deux", "__RAISE__ no\ufffd"]), Ledger(path))
    assert isinstance(completer, Completer) and completer.identity["kind"] == "scripted"
    completions = asyncio.run(completer.complete([ask("a b c"), ask("d", "synthesize", "q2")]))
    assert [completion.text for completion in completions] == ["un deux", None]
    rows = list(read_jsonl(path))
    assert all(1.7e9 < row.pop("time") < 4e9 for row in rows)
    assert rows == [
        {
            "stage": "solve",
            "question_id": "q1",
            "model": "scripted",
            "prompt_tokens": 3,
            "completion_tokens": 2,
            "seconds": 0.0,
            "is_cached": False,
            "finish_reason": "stop",
            "error": None,
        },
        {
            "stage": "synthesize",
            "question_id": "q2",
            "model": "scripted",
            "prompt_tokens": 1,
            "completion_tokens": 0,
            "seconds": 0.0,
            "is_cached": False,
            "finish_reason": "error",
            "error": "no\ufffd",
        },
    ]


def test_cached_and_real_calls_are_told_apart(tmp_path):
    ledger = Ledger(tmp_path / "calls.jsonl")
    inner = ScriptedCompleter(lambda request: "yes")
    completer = LedgerCompleter(CachedCompleter(inner, tmp_path / "cache.sqlite"), ledger)
    for _ in range(3):
        asyncio.run(completer.complete([ask("a"), ask("b")]))
    assert len(inner.requests) == 2
    assert ledger.usage(is_cached=False).calls == 2 and ledger.usage(is_cached=True).calls == 4
    assert ledger.usage().cached_calls == 4
    assert [row["is_cached"] for row in read_jsonl(ledger.path)] == [False] * 2 + [True] * 4


def test_calls_are_recorded_when_they_arrive_and_the_file_is_added_to(tmp_path):
    path = tmp_path / "calls.jsonl"
    seen = []
    for word in "ab":
        completer = LedgerCompleter(ScriptedCompleter(["x", "y"]), Ledger(path))
        asyncio.run(
            completer.complete_each(
                [ask(word), ask(word * 2)],
                lambda position, completion: seen.append(len(path.read_text().splitlines())),
            )
        )
    assert seen == [1, 2, 3, 4]


def test_a_line_that_was_cut_short_does_not_spoil_the_next(tmp_path):
    path = tmp_path / "calls.jsonl"
    path.write_text('{"stage": "a"}\n{"stage": "cu')
    Ledger(path).record(ask("x"), Completion("a"), "m")
    first, cut, last = path.read_text().splitlines()
    assert cut == '{"stage": "cu' and json.loads(last)["stage"] == "solve"


def test_r23_no_line_holds_the_key(tmp_path, monkeypatch):
    monkeypatch.setenv("TRIAX_TEST_KEY", "sk-secret-123456")
    with FakeServer(fault=lambda *_: error(400, "bad key sk-secret-123456")) as server:
        inner = HttpCompleter("fake", server.base_url, api_key_env="TRIAX_TEST_KEY")
        completer = LedgerCompleter(inner, Ledger(tmp_path / "calls.jsonl"))
        asyncio.run(completer.complete([ask("a")]))
    [row] = read_jsonl(tmp_path / "calls.jsonl")
    assert "bad key [key]" in row["error"] and "sk-secret" not in json.dumps(row)


WRITER = """
import sys
from triax.llm.ledger import Ledger
from triax.records.completions import Completion, CompletionRequest, Message
ledger = Ledger(sys.argv[1])
for number in range(300):
    request = CompletionRequest((Message("user", "x"),), stage="s" * 500, question_id=sys.argv[2])
    ledger.record(request, Completion(str(number), "stop", number), "m")
"""


def test_r30_two_processes_share_a_ledger(tmp_path):
    path = tmp_path / "calls.jsonl"
    writers = [
        subprocess.Popen([sys.executable, "-c", WRITER, str(path), name]) for name in ("p", "q")
    ]
    assert [writer.wait(60) for writer in writers] == [0, 0]
    rows = list(read_jsonl(path))
    for name in ("p", "q"):
        numbers = [row["prompt_tokens"] for row in rows if row["question_id"] == name]
        assert numbers == list(range(300))


def test_what_a_file_says_adds_up(tmp_path):
    request = CompletionRequest((Message("user", "x"),), stage="read")
    ledger = Ledger(tmp_path / "calls.jsonl")
    for cached in (False, True):
        ledger.record(request, Completion("a", "stop", 7, 2, 0.5, is_cached=cached), "m")
    assert read_usage(tmp_path / "calls.jsonl") == Usage(2, 1, 14, 4, 1.0) == ledger.usage()
    assert read_usage(tmp_path / "none.jsonl") == Usage()
