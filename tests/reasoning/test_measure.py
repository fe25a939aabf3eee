"""Tests of triax.reasoning.measure."""

import asyncio
import json
from dataclasses import replace

import pytest

from triax.corpora.slots import Slot
from triax.llm.ask import Reply
from triax.llm.scripted import ScriptedCompleter
from triax.reasoning.decompose import GoldDecomposer
from triax.reasoning.measure import (
    filled_value,
    measure_decomposer,
    measure_resolver,
    slot_task,
)
from triax.reasoning.resolve import FillingResolver
from triax.records.documents import Chunk
from triax.records.query_triplets import QueryTriplet
from triax.records.questions import Question
from triax.records.usage import Usage

QUERY = QueryTriplet.parse("Brand", "author", "?")


def slot(number, gold=0):
    passages = (Chunk("a", "a", "By Ibsen.", "Brand"), Chunk("b", "b", "A town.", "Skien"))
    return Slot(f"s{number}", QUERY, ("Ibsen",), passages, gold)


def test_a_slot_is_shown_as_a_round_would():
    task = slot_task(slot(1))
    assert task.state.searchable == (QUERY,) and not task.state.resolved and not task.state.fuzzy
    assert [one.chunk.id for one in task.evidence.chunks] == ["a", "b"]
    assert [one.score for one in task.evidence.chunks] == [1.0, 0.5]
    assert task.question == Question("s1", "Brand author")


def test_the_value_is_what_stands_in_the_gap():
    ibsen, skien = (QueryTriplet.parse("Brand", "author", one) for one in ("Ibsen", "Skien"))
    assert filled_value(QUERY, Reply((ibsen, skien), Usage())) == ("Ibsen", None)
    assert filled_value(QUERY, Reply((), Usage())) == (None, None)
    assert filled_value(QUERY, Reply(None, Usage(), error="unreadable")) == (None, None)
    assert filled_value(QUERY, Reply((QUERY,), Usage())) == (None, None)
    unsure, sure = replace(ibsen, confidence=0.2), replace(skien, confidence=0.7)
    assert filled_value(QUERY, Reply((unsure, sure), Usage())) == ("Skien", 0.7)
    asked = QueryTriplet.parse("?", "author", "Ibsen")
    brand = QueryTriplet.parse("Brand", "author", "Ibsen")
    assert filled_value(asked, Reply((brand,), Usage())) == ("Brand", None)


def test_r04_a_row_is_made_once_and_a_failed_call_again(tmp_path):
    path = tmp_path / "items.jsonl"
    slots = [slot(1), slot(2, None), slot(3)]
    seen = []

    class Resolver:
        is_down = True

        async def resolve(self, tasks):
            seen.append([task.question.id for task in tasks])
            return [self._reply(task.question.id) for task in tasks]

        def _reply(self, own):
            if own == "s3" and self.is_down:
                return Reply(None, Usage(calls=1), error="no connection", is_failed=True)
            value = (QueryTriplet.parse("Brand", "author", "Ibsen"),) if own != "s2" else ()
            return Reply(value, Usage(calls=1))

    resolver, done = Resolver(), []
    run = measure_resolver(resolver, slots, path, batch_size=2, progress=done.append)
    rows = asyncio.run(run)
    assert seen == [["s1", "s2"], ["s3"]] and done == [0, 2, 3]
    assert [row["prediction"] for row in rows] == ["Ibsen", None, None]
    assert [row["is_here"] for row in rows] == [True, False, True]
    assert rows[2]["error"] == "no connection" and rows[0]["usage"]["calls"] == 1
    resolver.is_down = False
    rows = asyncio.run(measure_resolver(resolver, slots[::-1], path))
    assert seen[2:] == [["s3"]]
    assert [(row["id"], row["prediction"]) for row in rows] == [
        ("s3", "Ibsen"),
        ("s2", None),
        ("s1", "Ibsen"),
    ]
    assert len(path.read_text().splitlines()) == 4 and json.loads(path.read_text().split("\n")[0])


def test_a_prompted_resolver_sees_the_passages(tmp_path):
    completer = ScriptedCompleter(["Ibsen"])
    rows = asyncio.run(measure_resolver(FillingResolver(completer), [slot(1)], tmp_path / "x"))
    assert rows[0]["prediction"] == "Ibsen" and rows[0]["confidence"] is None
    prompt = completer.requests[0].messages[-1].content
    assert prompt == "Passages:\n[1] Brand\nBy Ibsen.\n[2] Skien\nA town.\n\nBrand | author | ?"


def test_decompositions(tmp_path):
    known = Question("q1", "Who wrote Brand?", gold_query_triplets=(QUERY,))
    rows = asyncio.run(
        measure_decomposer(GoldDecomposer(), [known, Question("q2", "?")], tmp_path / "x")
    )
    assert rows[0]["predicted"] == rows[0]["gold"] == [["Brand", "author", "?"]]
    assert rows[1]["predicted"] is None and "no gold" in rows[1]["error"]


def test_equal_ids_are_refused(tmp_path):
    with pytest.raises(ValueError, match="1 ids repeat"):
        asyncio.run(measure_decomposer(GoldDecomposer(), [Question("q", "?")] * 2, tmp_path / "x"))
