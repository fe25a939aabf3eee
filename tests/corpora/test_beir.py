"""Tests of triax.corpora.beir."""

import json

import pytest

from triax.corpora.beir import load_beir, read_qrels


@pytest.fixture
def folder(tmp_path):
    def write(name, rows):
        lines = [json.dumps(row) for row in rows]
        (tmp_path / name).write_text("\n".join(lines), encoding="utf-8")

    write(
        "corpus.jsonl",
        [{"_id": "d1", "title": "T", "text": "one"}, {"_id": "d2", "title": "", "text": "two"}],
    )
    write(
        "queries.jsonl",
        [
            {"_id": "q1", "text": "first?", "metadata": {"answer": "yes"}},
            {"_id": "q2", "text": "second?", "metadata": {}},
            {"_id": "q3", "text": "of another split?"},
        ],
    )
    (tmp_path / "qrels").mkdir()
    (tmp_path / "qrels" / "test.tsv").write_text(
        "query-id\tcorpus-id\tscore\nq2\td1\t0\nq2\td9\t1\nq1\td2\t2\nq1\td1\t1\n", encoding="utf-8"
    )
    return tmp_path


def test_judged_queries_become_questions(folder):
    corpus = load_beir(folder, name="b")
    first, second = corpus.questions
    assert (first.id, first.text, first.answers) == ("q1", "first?", ("yes",))
    assert first.gold_document_ids == ("d2", "d1")
    assert [(one.id, one.title, one.text) for one in corpus.documents] == [
        ("d1", "T", "one"),
        ("d2", "", "two"),
    ]
    assert len(load_beir(folder, limit=1).questions) == 1
    assert second.gold_document_ids == () and second.unmatched_gold == ("d9",)


def test_missing_files_and_foreign_queries_are_named(folder):
    with pytest.raises(FileNotFoundError, match="dev.tsv is missing; splits in that folder: test"):
        load_beir(folder, "dev")
    (folder / "qrels" / "test.tsv").write_text("h\th\th\nq9\td1\t1\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"1 queries .*\['q9'\]"):
        load_beir(folder)
    (folder / "corpus.jsonl").unlink()
    with pytest.raises(FileNotFoundError, match="corpus.jsonl"):
        load_beir(folder)


def test_bad_lines_are_named(folder):
    path = folder / "qrels" / "test.tsv"
    path.write_text('h\th\th\nq"1\td1\t1\nq1\td1\n', encoding="utf-8")
    lines = read_qrels(path)
    assert next(lines) == ('q"1', "d1", 1)
    with pytest.raises(ValueError, match="test.tsv:3"):
        next(lines)
