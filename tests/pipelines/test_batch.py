import asyncio
import json

import ir_measures
import pytest

from triax.pipelines.batch import answer_all
from triax.records.documents import Chunk
from triax.records.evidence import Evidence, ScoredChunk
from triax.records.files import read_jsonl
from triax.records.questions import Question
from triax.records.state import State
from triax.records.traces import Round, Trace
from triax.records.usage import Usage


class Counting:
    """Answers with the id in capitals; counts; fails or dies where told to."""

    name = "counting"

    def __init__(self, failing=(), deadly=()):
        self.asked, self.failing, self.deadly = [], failing, deadly

    async def answer(self, questions):
        ids = [question.id for question in questions]
        self.asked.append(ids)
        if set(ids) & set(self.deadly):
            raise KeyboardInterrupt
        return [self._trace(question) for question in questions]

    def _trace(self, question):
        chunk = ScoredChunk(Chunk(f"chunk {question.id}", "d", "text"), 0.25)
        error = "down" if question.id in self.failing else None
        return Trace(
            question.id,
            question.text,
            self.name,
            None if error else question.id.upper(),
            "error" if error else "read",
            error,
            rounds=(Round(1, ("q",), Evidence((chunk,)), State(), State()),),
            chunk_ids=("other", chunk.chunk.id),
            usage=Usage(2, 1, 10, 3, 0.5),
            seconds=1.5,
        )


QUESTIONS = [Question(name, f"question {name}") for name in "abcde"]


def run(folder, pipeline, **options):
    return asyncio.run(answer_all(QUESTIONS, pipeline, folder, **({"batch_size": 2} | options)))


def test_rows_are_in_order_of_the_questions(tmp_path):
    counts = []
    pipeline = Counting()
    rows = run(tmp_path, pipeline, progress=counts.append)
    assert pipeline.asked == [["a", "b"], ["c", "d"], ["e"]]
    assert counts == [0, 2, 4, 5]
    assert rows == list(read_jsonl(tmp_path / "answers.jsonl"))
    assert rows[0] == {
        "question_id": "a",
        "question": "question a",
        "pipeline": "counting",
        "answer": "A",
        "stop_reason": "read",
        "error": None,
        "num_rounds": 1,
        "chunk_ids": ["other", "chunk a"],
        "usage": {
            "calls": 2,
            "cached_calls": 1,
            "prompt_tokens": 10,
            "completion_tokens": 3,
            "llm_seconds": 0.5,
        },
        "seconds": 1.5,
    }
    assert [row["question_id"] for row in read_jsonl(tmp_path / "traces.jsonl")] == list("abcde")


def test_r04_a_run_that_died_goes_on_where_it_was(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path, Counting(deadly="c"))
    assert not (tmp_path / "answers.jsonl").exists()
    again, counts = Counting(), []
    rows = run(tmp_path, again, progress=counts.append)
    assert again.asked == [["c", "d"], ["e"]]
    assert counts == [2, 4, 5]
    whole = run(tmp_path / "whole", Counting())
    assert rows == whole


def test_r03_only_failed_questions_are_asked_again(tmp_path):
    first = run(tmp_path, Counting(failing="bd"))
    assert [row["error"] for row in first] == [None, "down", None, "down", None]
    again = Counting()
    second = run(tmp_path, again)
    assert again.asked == [["b", "d"]]
    assert [row["answer"] for row in second] == list("ABCDE")


def test_a_finished_run_asks_nothing(tmp_path):
    run(tmp_path, Counting())
    before = (tmp_path / "answers.jsonl").read_bytes()
    again = Counting()
    run(tmp_path, again)
    assert (again.asked, (tmp_path / "answers.jsonl").read_bytes()) == ([], before)


def test_trec_readers_read_the_run(tmp_path):
    run(tmp_path, Counting())
    lines = (tmp_path / "run.trec").read_text(encoding="utf-8").splitlines()
    assert lines[:2] == ["a Q0 other 1 2 counting", "a Q0 chunk%20a 2 1 counting"]
    found = list(ir_measures.read_trec_run(str(tmp_path / "run.trec")))
    assert [(one.query_id, one.doc_id) for one in found][:2] == [("a", "other"), ("a", "chunk%20a")]
    assert len(found) == 10


def test_questions_may_be_none(tmp_path):
    assert asyncio.run(answer_all([], Counting(), tmp_path)) == []
    assert (tmp_path / "answers.jsonl").read_text(encoding="utf-8") == ""


def test_text_that_utf8_cannot_hold_does_not_stop_the_run(tmp_path):
    question = Question("a", "half of a pair: \ud83d")
    rows = asyncio.run(answer_all([question], Counting(), tmp_path))
    assert rows[0]["question"] == question.text
    line = (tmp_path / "answers.jsonl").read_bytes().decode("utf-8")
    assert json.loads(line)["question"] == question.text
