import asyncio
import json
import logging

from triax.llm.cache import CachedCompleter
from triax.llm.scripted import ScriptedCompleter
from triax.llm.shared_calls import SharedCalls
from triax.records.completions import CompletionRequest, Message

ROW = {"key": "k", "stage": "read", "call": {"completer": {}}, "completion": {"text": "a"}}


def node(folder, name, asked):
    """A cache on the local disk of a node; `asked` gets what its model is really asked."""

    def answer(request):
        asked.append(request.messages[-1].content)
        return f"echo {asked[-1]}"

    return CachedCompleter(
        ScriptedCompleter(answer), folder / name / "calls.db", shared=folder / "shared"
    )


def complete(completer, *texts):
    requests = [CompletionRequest((Message("user", text),)) for text in texts]
    return asyncio.run(completer.complete(requests))


def test_each_process_writes_a_file_of_its_own_and_reads_all(tmp_path):
    one, two = SharedCalls(tmp_path), SharedCalls(tmp_path)
    one.append(ROW)
    two.append(ROW | {"key": "l"})
    assert one.path != two.path
    assert sorted(row["key"] for row in one.rows()) == ["k", "l"]
    assert [*SharedCalls(tmp_path / "new").rows()] == []


def test_lines_that_are_no_calls_are_passed_over(tmp_path):
    shared = SharedCalls(tmp_path)
    shared.append(ROW)
    line = json.dumps(ROW)
    (tmp_path / "other.jsonl").write_text(f'{{"key": 1}}\n[]\n{line}\n{line[:20]}')
    assert [*shared.rows()] == [ROW, ROW]


def test_r04_another_node_asks_nothing_again(tmp_path):
    asked = []
    first = complete(node(tmp_path, "n1", asked), "a", "b")
    again = complete(node(tmp_path, "n2", asked), "b", "c", "a")
    assert asked == ["a", "b", "c"]
    assert [one.is_cached for one in again] == [True, False, True]
    assert [again[2].text, again[0].text] == [one.text for one in first]
    # What it took over is its own now, and is not written again.
    assert complete(node(tmp_path, "n2", asked), "a")[0].is_cached and len(asked) == 3
    lines = [path.read_text().count("\n") for path in (tmp_path / "shared").glob("*.jsonl")]
    assert sorted(lines) == [1, 2]


def test_a_shared_folder_that_takes_nothing_leaves_the_local_file(tmp_path, caplog):
    asked = []
    completer = node(tmp_path, "n1", asked)
    (tmp_path / "shared").rmdir()
    with caplog.at_level(logging.WARNING):
        complete(completer, "a", "b")
    assert "results are shared no more" in caplog.text and completer.num_unsaved == 0
    assert all(one.is_cached for one in complete(completer, "a", "b"))
