"""Lessons from a run that a person can follow: one question, two rounds."""

import json

import pytest

from triax.records.documents import Chunk
from triax.records.evidence import Evidence, Hit, ScoredChunk
from triax.records.query_triplets import QueryTriplet
from triax.records.state import Resolved, State
from triax.records.trace_json import trace_to_json
from triax.records.traces import Round, Trace
from triax.records.triplets import Proposition, Triplet
from triax.training.lessons.traces import TracesError, read_passages, read_traces

AUTHOR = QueryTriplet.parse("Brand", "author", "?x")
BIRTH = QueryTriplet.parse("?x", "born in", "?y")
BORN = QueryTriplet.parse("Henrik Ibsen", "born in", "?y")
WROTE = Resolved(Triplet("Brand", "author", "Henrik Ibsen"), ("c1",), 1)
CITY = Resolved(Triplet("Henrik Ibsen", "born in", "Skien"), ("c2",), 3)
PASSAGES = {"c1": "Brand (play)\nBy Henrik Ibsen.", "c2": "Ibsen\nBorn in Skien."}


def found(text, chunk_id):
    hit = Hit(Proposition("p", Triplet("a", "b", "c"), text, (chunk_id,)), 1.0, (chunk_id,))
    return Evidence((ScoredChunk(Chunk(chunk_id, chunk_id, ""), 1.0),), (hit,))


def trace(id_="q1", answer="Skien", error=None, pipeline="t2rag"):
    states = [
        State((), (AUTHOR,), (BIRTH,)),
        State((WROTE,), (BORN,)),
        State((WROTE,), (BORN,)),
        State((WROTE, CITY)),
    ]
    evidence = [
        found("Brand author Henrik Ibsen", "c1"),
        found("Brand set in Norway", "c1"),
        found("Henrik Ibsen born in Skien", "c2"),
    ]
    rounds = tuple(Round(n + 1, ("q",), evidence[n], states[n], states[n + 1]) for n in range(3))
    return Trace(
        id_,
        "Where was the author of Brand born?",
        pipeline,
        answer,
        error=error,
        decomposition=(AUTHOR, BIRTH),
        rounds=rounds,
        final=states[-1],
        chunk_ids=("c1", "c2"),
    )


def run(folder, traces, f1, split="train", answers=("Skien",)):
    (folder / "config.json").write_text(json.dumps({"corpus": {"split": split}}))
    rows = [trace_to_json(one) for one in traces]
    (folder / "traces.jsonl").write_text("".join(json.dumps(one) + "\n" for one in rows))
    scores = [
        {"question_id": id_, "answers": list(answers), "f1": value} for id_, value in f1.items()
    ]
    (folder / "per_question.jsonl").write_text("".join(json.dumps(s) + "\n" for s in scores))
    return folder


def test_a_right_answer_teaches_each_of_its_steps(tmp_path):
    lessons = read_traces(run(tmp_path, [trace()], {"q1": 1.0}))
    assert [(one.assignment, one.prompt, one.target) for one in lessons] == [
        (
            "decompose",
            "Question: Where was the author of Brand born?",
            "Brand | author | ?a\n?a | born in | ?b",
        ),
        (
            "resolve",
            "Facts:\n- Brand author Henrik Ibsen\n\nBrand | author | ?",
            "Henrik Ibsen",
        ),
        ("resolve", "Facts:\n- Brand set in Norway\n\nHenrik Ibsen | born in | ?", "not found"),
        ("resolve", "Facts:\n- Henrik Ibsen born in Skien\n\nHenrik Ibsen | born in | ?", "Skien"),
        (
            "answer",
            "Facts:\nBrand | author | Henrik Ibsen\nHenrik Ibsen | born in | Skien\n\n"
            "Question: Where was the author of Brand born?",
            "Skien",
        ),
    ]
    assert {one.source for one in lessons} == {tmp_path.name}


def test_passages_are_shown_where_they_are_known(tmp_path):
    lessons = read_traces(run(tmp_path, [trace()], {"q1": 1.0}), PASSAGES)
    shown = [one.prompt for one in lessons if one.assignment == "resolve"]
    assert shown[2] == "Passages:\n[1] Ibsen\nBorn in Skien.\n\nHenrik Ibsen | born in | ?"


def test_passages_come_from_a_corpus_file(tmp_path):
    rows = [
        {"id": "c1", "title": "Brand (play)", "text": "By Henrik Ibsen."},
        {"id": "c2", "title": "", "text": "Born in Skien."},
    ]
    path = tmp_path / "corpus.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert read_passages(str(path)) == {"c1": PASSAGES["c1"], "c2": "Born in Skien."}
    assert read_passages(None) == {}


def test_a_pipeline_that_reads_teaches_reading(tmp_path):
    read = Trace("q1", "Born where?", "dense", "In Skien", chunk_ids=("c2",))
    folder = run(tmp_path, [read], {"q1": 0.9})
    assert read_traces(folder) == []
    (lesson,) = read_traces(folder, PASSAGES)
    assert lesson.prompt == "Passages:\n[1] Ibsen\nBorn in Skien.\n\nQuestion: Born where?"
    assert lesson.target == "Skien"


def test_wrong_answers_and_failures_teach_nothing(tmp_path):
    traces = [trace("q1", "Oslo"), trace("q2", error="no answer"), trace("q3", None), trace("q4")]
    folder = run(tmp_path, traces, {"q1": 0.0, "q2": 1.0, "q3": 1.0})
    assert read_traces(folder) == []


def test_the_later_trace_of_a_question_holds(tmp_path):
    folder = run(tmp_path, [trace(error="server gone"), trace()], {"q1": 1.0})
    assert len(read_traces(folder)) == 5


@pytest.mark.parametrize("split", ["dev", None])
def test_questions_of_another_split_are_refused(tmp_path, split):
    folder = run(tmp_path, [trace()], {"q1": 1.0}, split)
    with pytest.raises(TracesError, match=r"made on the split .*corpus\.split=train"):
        read_traces(folder)


def test_a_run_that_is_not_scored_is_named(tmp_path):
    folder = run(tmp_path, [trace()], {"q1": 1.0})
    (folder / "per_question.jsonl").unlink()
    with pytest.raises(FileNotFoundError, match="has no per_question.jsonl"):
        read_traces(folder)
