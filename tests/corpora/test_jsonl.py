"""Tests of triax.corpora.jsonl."""

import gzip
import json
import os
from pathlib import Path

import pytest

from triax.corpora.jsonl import load_jsonl, read_document, read_question, read_rows, three_texts
from triax.records.documents import Document
from triax.records.query_triplets import QueryTriplet
from triax.records.questions import Step
from triax.records.triplets import Triplet

DATA = Path(os.environ.get("TRIAX_DATA") or Path(__file__).parents[2].parent / "shared" / "data")
needs_data = pytest.mark.skipif(not DATA.is_dir(), reason="no shared data folder; set TRIAX_DATA")

PASSAGES = [
    {"id": "d1", "title": "Brand", "text": "Brand is a play by Ibsen."},
    {"id": "d2", "title": "Ibsen", "text": "Ibsen was born in Skien."},
    {"id": "d3", "title": "Ibsen", "text": "He wrote plays."},
]


def question(**fields):
    row = {
        "id": "q1",
        "question": "Where was the author of Brand born?",
        "answer": "Skien",
        "answer_aliases": ["Skien", "Skien, Norway"],
        "type": "2hop",
        "source": "s1",
        "supporting_facts": [["Brand", 0], ["Ibsen", None], ["Brand", 1]],
        "paragraphs": [
            {"title": "Other", "text": "Nothing.", "is_supporting": False},
            {"title": "Ibsen", "text": "Ibsen was born in Skien.", "is_supporting": True},
            {"title": "Brand", "text": "Brand is a play by Ibsen.", "is_supporting": True},
        ],
        "evidences": [["Brand", "author", "Ibsen"], ["Ibsen", "born in"]],
        "decomposition": [
            {"question": "Brand >> author", "answer": "Ibsen", "support_idx": 2},
            {"question": "#1 >> born in", "answer": "Skien", "support_title": "Brand"},
            {"statement": "So it is Skien."},
        ],
        "query_triples": [["Brand", "author", "?1"], ["?1", "born in", "?2"]],
    }
    return row | fields


@pytest.fixture
def folder(tmp_path):
    def write(name, rows):
        with gzip.open(tmp_path / name, "wt", encoding="utf-8") as stream:
            stream.writelines(json.dumps(row) + "\n" for row in rows)

    write("corpus.jsonl.gz", PASSAGES)
    write("dev.jsonl.gz", [question()])
    write("train.jsonl.gz", [question(id="q2", question="B?", source="s2"), question(id="q3")])
    write("openie.jsonl.gz", [{"id": "d1", "triples": []}, {"id": "d2", "triples": []}])
    return tmp_path


def test_question_is_read_with_all_its_gold(folder):
    corpus = load_jsonl(folder)
    (found,) = corpus.questions
    assert corpus.name == folder.name and [one.id for one in corpus.documents] == ["d1", "d2", "d3"]
    assert found.answers == ("Skien", "Skien, Norway") and found.kind == "2hop"
    assert found.gold_document_ids == ("d2", "d1") and found.unmatched_gold == ()
    assert found.gold_triplets == (Triplet("Brand", "author", "Ibsen"),)
    assert found.gold_query_triplets == (
        QueryTriplet.parse("Brand", "author", "?1"),
        QueryTriplet.parse("?1", "born in", "?2"),
    )
    assert found.steps == (
        Step("Brand >> author", "Ibsen", "d1"),
        Step("#1 >> born in", "Skien", "d1"),
        Step("So it is Skien.", "", None),
    )


def test_r19_ambiguous_titles_and_missing_passages_are_unmatched(tmp_path, folder):
    row = question(paragraphs=[], supporting_facts=[["Ibsen", None], ["Brand", 0], ["Gone", 1]])
    (tmp_path / "new.jsonl").write_text(json.dumps(row), encoding="utf-8")
    (found,) = load_jsonl(folder, questions="new.jsonl").questions
    assert found.gold_document_ids == ("d1",) and found.unmatched_gold == ("Ibsen", "Gone")
    (found,) = load_jsonl(folder, questions="new.jsonl", with_gold=False).questions
    assert found.gold_document_ids == found.unmatched_gold == ()


def test_splits_filters_limits_and_document_lists(folder):
    both = load_jsonl(folder, ["train", "dev"], name="x")
    assert [one.id for one in both.questions] == ["q2", "q3", "q1"] and both.name == "x"
    one = load_jsonl(folder, ["train", "dev"], only={"source": "s1"}, limit=1)
    assert [question.id for question in one.questions] == ["q3"] and len(one.documents) == 3
    assert len(load_jsonl(folder, "train", only={"source": ["s1", "s2"]}).questions) == 2
    cut = load_jsonl(folder, documents_in="openie.jsonl.gz")
    assert [one.id for one in cut.documents] == ["d1", "d2"]
    with pytest.raises(ValueError, match=r"no question fits .*'source': \['s1', 's2'\]"):
        load_jsonl(folder, "train", only={"source": "s9"})


def test_without_a_corpus_file_the_paragraphs_are_pooled(folder, caplog):
    corpus = load_jsonl(folder, ["train", "dev"], corpus=None)
    assert [one.title for one in corpus.documents] == ["Other", "Ibsen", "Brand"]
    assert all(len(one.gold_document_ids) == 2 for one in corpus.questions)
    assert "repeated" not in caplog.text


def test_rows_that_lack_a_field_and_files_that_are_missing_are_named(tmp_path, folder):
    (tmp_path / "bad.jsonl").write_text('{"id": 1, "question": "x"}\n{"id": 2}', encoding="utf-8")
    with pytest.raises(ValueError, match="bad.jsonl, object 2: 'question' is missing"):
        list(read_rows(tmp_path / "bad.jsonl", ["question"]))
    with pytest.raises(FileNotFoundError, match="test.jsonl.gz is missing; .*dev.jsonl.gz"):
        load_jsonl(folder, "test")


def test_document_keeps_further_fields_and_null_titles_are_empty():
    row = {"id": 7, "title": None, "text": "x", "source": "s"}
    assert read_document(row) == Document("7", "x", "", {"source": "s"})


def test_question_with_bare_fields():
    found = read_question({"id": 1, "question": "x", "answer": None, "type": None})
    assert (found.id, found.answers, found.kind, found.steps) == ("1", (), "", ())


@pytest.mark.parametrize("value", [["a", "b"], ["a", "", "c"], ["a", None, "c"], "abc", None])
def test_three_texts_refuses_what_is_no_triplet(value):
    assert three_texts(value) is None


def counts(corpus):
    judged = [one for one in corpus.questions if one.gold_document_ids or one.unmatched_gold]
    return (
        len(corpus.documents),
        len(corpus.questions),
        len(judged),
        sum(len(one.gold_document_ids) for one in judged),
        sum(len(one.unmatched_gold) for one in judged),
    )


@pytest.mark.data
@needs_data
@pytest.mark.parametrize(
    ("name", "arguments", "expected"),
    [
        # Documents, questions, questions with gold, gold, unmatched: counted over the raw files.
        ("hotpotqa", {}, (24201, 383, 383, 766, 0)),
        ("2wikimultihopqa", {}, (6119, 125, 112, 274, 2)),
        ("2wikimultihopqa", {"only": {"in_corpus": True}}, (6119, 124, 111, 274, 0)),
        ("popqa", {}, (1475, 156, 156, 312, 0)),
        (
            "musique",
            {
                "split": ["train", "dev"],
                "only": {"source": "hipporag_musique100"},
                "documents_in": "openie_gpt35.jsonl.gz",
            },
            (1890, 84, 84, 200, 0),
        ),
    ],
)
def test_r19_gold_of_the_real_data_is_in_the_corpus(name, arguments, expected):
    assert counts(load_jsonl(DATA / name, **arguments)) == expected
