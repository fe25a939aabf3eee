"""Tests of triax.scoring.retrieval."""

from math import log2

import pytest

from triax.records.questions import Question
from triax.scoring.retrieval import rank_documents, score_retrieval


def test_values_by_hand():
    questions = [
        Question("q1", "?", gold_document_ids=("a", "b")),
        Question("q2", "?", gold_document_ids=("c",)),
        Question("q3", "?"),
    ]
    rankings = {"q1": ["x", "a", "y", "b", "a"], "q2": [], "q3": ["a"]}
    summary, rows = score_retrieval(rankings, questions, cutoffs=(2, 5))
    ideal = 1 + 1 / log2(3)
    assert rows[0] == {
        "question_id": "q1",
        "gold": ["a", "b"],
        "unmatched_gold": [],
        "mrr": 0.5,
        "recall@2": 0.5,
        "ndcg@2": pytest.approx(1 / log2(3) / ideal),
        "recall@5": 1.0,
        "ndcg@5": pytest.approx((1 / log2(3) + 1 / log2(5)) / ideal),
        "all@2": 0.0,
        "all@5": 1.0,
    }
    assert all(rows[1][name] == 0.0 for name in ("mrr", "recall@5", "all@5", "ndcg@2"))
    assert summary["retrieval/recall@5"] == 0.5 and summary["retrieval/all@5"] == 0.5
    assert summary["retrieval/mrr"] == 0.25 and summary["retrieval/recall@2"] == 0.25
    assert summary["retrieval/scored"] == 2 and summary["retrieval/no_gold"] == 1


def test_r19_unmatched_gold_stops_the_scoring_or_is_a_miss():
    questions = [
        Question("q1", "?", gold_document_ids=("a",), unmatched_gold=("Lost title",)),
        Question("q2", "?", unmatched_gold=("Other",)),
    ]
    rankings = {"q1": ["a", "Lost title"], "q2": ["a"]}
    with pytest.raises(ValueError, match="2 gold documents of 2 questions .*q1.*Lost title"):
        score_retrieval(rankings, questions)
    summary, rows = score_retrieval(rankings, questions, (1, 5), allow_unmatched=True)
    assert [row["recall@5"] for row in rows] == [0.5, 0.0]
    assert rows[0]["all@5"] == 0.0 and summary["retrieval/unmatched_gold"] == 2


def test_r07_ids_of_any_alphabet_and_gold_that_was_not_found():
    questions = [Question("вопрос 1\x00", "?", gold_document_ids=("d0", "東京\x00b", "東京\x00c"))]
    summary, _ = score_retrieval({"вопрос 1\x00": ["東京\x00b", "z"]}, questions, (5,))
    assert summary["retrieval/recall@5"] == pytest.approx(1 / 3)
    assert summary["retrieval/mrr"] == 1.0


def test_r19_no_mean_without_gold_and_never_nan():
    summary, rows = score_retrieval({"q": ["a"]}, [Question("q", "?")])
    assert rows == [] and set(summary) == {
        "retrieval/scored",
        "retrieval/no_gold",
        "retrieval/unmatched_gold",
    }
    assert score_retrieval({}, [])[0]["retrieval/scored"] == 0


def test_many_documents_keep_their_order():
    ranked = [f"d{place}" for place in range(5000)]
    questions = [Question("q", "?", gold_document_ids=("d4999",))]
    summary, _ = score_retrieval({"q": ranked}, questions, (4999, 5000))
    assert summary["retrieval/recall@4999"] == 0.0 and summary["retrieval/recall@5000"] == 1.0
    assert summary["retrieval/mrr"] == pytest.approx(1 / 5000)


def test_refusals():
    with pytest.raises(ValueError, match="have no ranking"):
        score_retrieval({}, [Question("q", "?")])
    with pytest.raises(ValueError, match="cutoffs"):
        score_retrieval({}, [], cutoffs=(0,))


def test_documents_stand_where_their_first_chunk_stands():
    where = {"a#0": "a", "a#1": "a", "b": "b"}
    assert rank_documents(["a#1", "b", "a#0"], where) == ["a", "b"]
    with pytest.raises(KeyError, match="chunk 'c' is in no document"):
        rank_documents(["c"], where)
