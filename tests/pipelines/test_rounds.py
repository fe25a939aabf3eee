"""What the pipelines of many rounds share: the loop, its limits, one search, the traces."""

import asyncio

from pipelines.searches import ByTitle
from triax.llm.ask import Reply
from triax.pipelines.rounds import Limits, Path, advance, read_rest, search_each, to_traces
from triax.reasoning.synthesize import Short
from triax.records.documents import Chunk
from triax.records.evidence import Evidence, ScoredChunk
from triax.records.questions import Question
from triax.records.usage import Usage


def paths(*names):
    return [Path(Question(name, f"{name}?")) for name in names]


def run(number_of, limits, *names, usage=Usage()):
    """Each path ends in the round that its name stands for; gives the paths and the turns."""
    made, turns = paths(*names), []

    async def turn(active):
        turns.append([path.question.id for path in active])
        for path in active:
            path.usage += usage
            path.add_round("thought")
            if len(path.rounds) == number_of[path.question.id]:
                path.stop_reason = "done"

    asyncio.run(advance(made, limits, turn))
    return made, turns


def test_open_paths_advance_together_and_leave_when_done():
    made, turns = run({"a": 2, "b": 1, "c": 9}, Limits(3), "a", "b", "c")
    assert turns == [["a", "b", "c"], ["a", "c"], ["c"]]
    assert [path.stop_reason for path in made] == ["done", "done", "max rounds"]
    assert [one.number for one in made[2].rounds] == [1, 2, 3]


def test_no_turn_is_taken_for_nobody():
    assert run({}, Limits(3)) == ([], [])
    assert run({"a": 1}, Limits(5), "a")[1] == [["a"]]
    made, turns = run({"a": 1}, Limits(0), "a")
    assert (turns, made[0].stop_reason) == ([], "max rounds")


def test_r17_a_path_ends_when_its_calls_or_tokens_are_spent():
    usage = Usage(calls=1, prompt_tokens=6, completion_tokens=4)
    for limits, reason in (
        (Limits(9, max_calls=2), "max calls"),
        (Limits(9, max_tokens=20), "max tokens"),
        (Limits(9, max_calls=2, max_tokens=20), "max calls"),
        (Limits(2), "max rounds"),
    ):
        [path], _ = run({"a": 9}, limits, "a", usage=usage)
        assert (path.stop_reason, len(path.rounds)) == (reason, 2)
    [path], _ = run({"a": 2}, Limits(9, max_calls=2), "a", usage=usage)
    assert path.stop_reason == "done"


def test_a_reply_without_a_value_stops_its_path():
    good, failed, unreadable = paths("good", "failed", "unreadable")
    assert good.take(Reply("x", Usage(calls=1)), "thought") == "x"
    assert failed.take(Reply(None, Usage(calls=1), error="down", is_failed=True), "thought") is None
    assert unreadable.take(Reply(None, Usage(calls=2), error="odd"), "thought") is None
    assert [
        (one.stop_reason, one.error, one.usage.calls) for one in (good, failed, unreadable)
    ] == [
        ("", None, 1),
        ("error", "thought: down", 1),
        ("unreadable thought", None, 2),
    ]


def search(*queries):
    retriever, made = ByTitle(Usage(calls=1)), paths(*map(str, range(len(queries))))
    found = asyncio.run(search_each(retriever, list(zip(made, queries)), 5))
    return found, made, retriever


def test_one_search_for_all_that_ask():
    found, made, retriever = search("Vertigo", "", "Stalker")
    assert retriever.searches == [[["Vertigo"], ["Stalker"]]]
    assert [[one.chunk.id for one in e.chunks] for e in found] == [["vertigo"], [], ["stalker"]]
    assert [path.usage.calls for path in made] == [1, 0, 1]


def test_no_search_where_nobody_asks():
    found, _, retriever = search("", "")
    assert (found, retriever.searches) == ([Evidence(), Evidence()], [])


class Reads:
    def __init__(self, *replies):
        self.replies, self.items = replies, []

    async def read(self, items):
        self.items += items
        return list(self.replies)


def test_those_without_an_answer_are_read():
    made = paths("answered", "abstained", "failed", "open", "down")
    made[0].short, made[1].short, made[2].error = Short("x"), Short(None), "thought: down"
    reader = Reads(Reply(Short("y"), Usage(calls=1)), Reply(None, Usage(calls=1), error="down"))
    asyncio.run(read_rest(reader, made, Path.merged))
    assert [question.id for question, _ in reader.items] == ["open", "down"]
    assert [path.short for path in made] == [Short("x"), Short(None), None, Short("y"), None]
    assert [path.error for path in made] == [None, None, "thought: down", None, "reading: down"]
    assert [path.usage.calls for path in made] == [0, 0, 0, 1, 1]
    reader = Reads()
    asyncio.run(read_rest(reader, made[:2], Path.merged))
    assert reader.items == []


def test_a_path_becomes_a_trace():
    def found(**scores):
        return Evidence(tuple(ScoredChunk(Chunk(n, n, ""), s) for n, s in scores.items()))

    [path] = paths("q")
    path.add_round("one", "first", found(a=0.2, b=0.1))
    path.add_round("two")
    path.add_round("three", "third", found(c=0.9, a=0.1))
    path.short, path.stop_reason, path.usage = Short("x"), "done", Usage(calls=3)
    [trace] = to_traces([path], "method", 0.0)
    assert (trace.question_id, trace.question, trace.pipeline) == ("q", "q?", "method")
    assert (trace.answer, trace.stop_reason, trace.error) == ("x", "done", None)
    assert (trace.chunk_ids, trace.usage.calls) == (("c", "a", "b"), 3)
    assert [(one.number, one.queries, one.note) for one in trace.rounds] == [
        (1, ("first",), "one"),
        (2, (), "two"),
        (3, ("third",), "three"),
    ]
    assert trace.seconds > 0
    [trace] = to_traces([path], "method", 0.0, lambda one: one.merged(2, "round"))
    assert trace.chunk_ids == ("a", "b")
    assert to_traces([], "method", 0.0) == []
