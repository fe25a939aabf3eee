"""Tests of triax.corpora.flashrag."""

import json

import pytest

from triax.corpora.flashrag import load_flashrag, read_passage, read_question
from triax.records.documents import Document


def test_contents_are_title_line_and_text():
    assert read_passage({"id": 3, "contents": '"Ibsen"\nA poet.\nA play.'}) == Document(
        "3", "A poet.\nA play.", "Ibsen"
    )
    assert read_passage({"id": "4", "contents": "one line"}) == Document("4", "one line")


def test_golden_answers_and_type():
    row = {
        "id": "test_0",
        "question": "Who?",
        "golden_answers": ["Ibsen", "Ibsen", "Henrik Ibsen"],
        "metadata": {"type": "bridge"},
    }
    found = read_question(row)
    assert (found.answers, found.kind) == (("Ibsen", "Henrik Ibsen"), "bridge")
    assert read_question({"id": "a", "question": "x", "golden_answers": "one"}).answers == ("one",)


def test_files_are_read(tmp_path):
    questions, corpus = tmp_path / "dev.jsonl", tmp_path / "wiki.jsonl"
    rows = [{"id": f"q{n}", "question": f"{n}?", "golden_answers": ["x"]} for n in range(3)]
    questions.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    corpus.write_text('{"id": "0", "contents": "T\\nx"}\n{"id": "1"}', encoding="utf-8")
    with pytest.raises(ValueError, match="wiki.jsonl, object 2: 'contents'"):
        load_flashrag(questions, corpus)
    corpus.write_text('{"id": "0", "contents": "T\\nx"}', encoding="utf-8")
    found = load_flashrag(questions, corpus, limit=2)
    assert found.name == tmp_path.name and len(found.questions) == 2
    assert found.documents == (Document("0", "x", "T"),)
