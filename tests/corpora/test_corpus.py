"""Tests of triax.corpora.corpus."""

import hashlib
import inspect
import json
import logging
from importlib import import_module
from pathlib import Path

import pytest
import yaml

from triax.corpora.corpus import build_corpus, content_id, fingerprint, tidy_documents, unique_texts
from triax.records.documents import Document
from triax.records.questions import Question, Step

CONF = Path(__file__).parents[2] / "conf" / "corpus"


def test_r08_empty_repeated_and_colliding_documents_follow_the_rule(caplog):
    documents = [
        Document("a", "one", "T"),
        Document("b", " \n\t"),
        Document("c", "one", "T"),
        Document("a", "two", "T"),
        Document("a", "one", "T"),
        Document("a", "three", "T"),
    ]
    with caplog.at_level(logging.WARNING):
        kept = tidy_documents(documents)
    assert [(one.id, one.text) for one in kept] == [("a", "one"), ("a~2", "two"), ("a~3", "three")]
    (record,) = caplog.records
    assert "1 documents without text, dropped" in record.getMessage()
    assert "2 repeated documents, dropped" in record.getMessage()
    assert "2 documents that share an id" in record.getMessage()


def test_r08_clean_input_gives_no_warning_and_title_makes_a_passage_its_own(caplog):
    with caplog.at_level(logging.WARNING):
        corpus = build_corpus(
            "c", [Document("a", "one", "S"), Document("b", "one", "T")], [Question("q", "Who?")]
        )
    assert len(corpus.documents) == 2 and not caplog.records


def test_r07_surrogates_and_controls_are_cleaned_everywhere():
    corpus = build_corpus(
        "c",
        [Document("a\x00", "x\ud800y\x07", "T\udfff", {"note": ["\ud800"]})],
        [Question("q\x00", "Who\ud800?", answers=("A\x00", " ", "A"))],
    )
    json.dumps([corpus.documents[0].text, corpus.questions[0].text]).encode()
    assert corpus.documents[0] == Document("a", "x\ufffdy", "T\ufffd", {"note": ["\ufffd"]})
    assert corpus.questions[0].id == "q" and corpus.questions[0].answers == ("A",)
    assert corpus.questions[0].text == "Who\ufffd?"


def test_r19_gold_follows_merged_documents_and_lost_gold_is_named(caplog):
    documents = [Document("a", "one"), Document("b", "one"), Document("c", "two")]
    question = Question(
        "q",
        "Who?",
        gold_document_ids=("b", "c", "gone", "a"),
        unmatched_gold=("Title",),
        steps=(Step("s", "x", "b"), Step("t", "y", "gone"), Step("u", "z")),
    )
    with caplog.at_level(logging.WARNING):
        (found,) = build_corpus("c", documents, [question]).questions
    assert found.gold_document_ids == ("a", "c")
    assert found.unmatched_gold == ("Title", "gone")
    assert [step.document_id for step in found.steps] == ["a", None, None]
    assert "2 gold documents that the corpus lacks" in caplog.text


def test_questions_repeated_blank_or_colliding(caplog):
    questions = [Question("q", "A?"), Question("q", "A?"), Question("q", "B?"), Question("e", " ")]
    corpus = build_corpus("c", [], questions)
    assert [(one.id, one.text) for one in corpus.questions] == [("q", "A?"), ("q~2", "B?")]


def test_r18_fingerprint_is_a_sha256_that_ignores_order_and_questions():
    first, second = Document("a", "é", "T"), Document("b", "two")
    expected = hashlib.sha256(b'["a", "T", "\\u00e9"]["b", "", "two"]').hexdigest()
    assert fingerprint([first, second]) == fingerprint([second, first]) == expected
    assert build_corpus("n", [first, second], [Question("q", "x")]).fingerprint == expected
    assert fingerprint([first, Document("b", "two", "!")]) != expected


def test_document_without_id_is_refused():
    with pytest.raises(ValueError, match="empty id"):
        tidy_documents([Document("", "x", "T")])


def test_r09_empty_corpus():
    corpus = build_corpus("c", [], [])
    assert corpus.documents == () and corpus.fingerprint == hashlib.sha256(b"").hexdigest()


def test_unique_texts_and_content_id():
    assert unique_texts([None, " a ", "a", 3, "", "b"]) == ("a", "b")
    assert content_id("T", "x") == hashlib.sha256(b"T\nx").hexdigest()[:16]


@pytest.mark.parametrize("path", sorted(CONF.glob("*.yaml")), ids=lambda path: path.stem)
def test_every_corpus_config_fits_its_reader(path):
    text = path.read_text(encoding="utf-8")
    assert text.startswith("# ") and len(text.splitlines()) <= 30
    config = yaml.safe_load(text)
    if "defaults" in config:
        config = yaml.safe_load((CONF / "jsonl.yaml").read_text(encoding="utf-8")) | config
    module, _, function = config["_target_"].rpartition(".")
    reader = getattr(import_module(module), function)
    given = {key for key in config if not key.startswith("_") and key != "defaults"}
    assert given <= set(inspect.signature(reader).parameters)
