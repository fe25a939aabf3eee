import pytest

from triax.records.questions import Question
from triax.scoring.runs import score_run
from triax.scoring.significance import mean_interval

QUESTIONS = [
    Question("a", "?", ("Tim Burton",), "bridge", ("d1", "d2")),
    Question("b", "?", ("yes",), "yes_no", ("d3",)),
    Question("c", "?", ("1911",), "bridge", ("d1",)),
]
DOCUMENT_OF = {"c1": "d1", "c2": "d2", "c1b": "d1", "c4": "d4"}


def row(question_id, answer, chunk_ids=(), error=None, num_rounds=1, calls=2):
    usage = {
        "calls": calls,
        "cached_calls": 0,
        "prompt_tokens": 100,
        "completion_tokens": 10,
        "llm_seconds": 0.5,
    }
    return {
        "question_id": question_id,
        "answer": answer,
        "error": error,
        "num_rounds": num_rounds,
        "chunk_ids": list(chunk_ids),
        "usage": usage,
        "seconds": 2.0,
    }


ANSWERS = [
    row("a", "the film director Tim Burton", ["c1", "c1b", "c4", "c2"], num_rounds=3, calls=5),
    row("b", "yes", ["c4"]),
    row("c", None, [], "synthesis: down", num_rounds=0, calls=1),
]


def test_every_score_of_a_run():
    summary, rows = score_run(ANSWERS, QUESTIONS, DOCUMENT_OF)
    f1 = [2 * 0.5 * 1 / 1.5, 1.0, 0.0]
    assert summary["answer/em"] == pytest.approx(1 / 3)
    assert summary["answer/f1"] == pytest.approx(sum(f1) / 3)
    # d1, d4, d2: one of two within two, both within five.
    assert summary["retrieval/recall@2"] == pytest.approx((0.5 + 0 + 0) / 3)
    assert summary["retrieval/recall@5"] == pytest.approx((1 + 0 + 0) / 3)
    assert summary["cost/total_calls"] == 8
    assert summary["cost/weighted_tokens"] == 140
    assert summary["cost/seconds"] == 2
    assert (summary["rounds"], summary["errors"]) == (pytest.approx(4 / 3), 1)
    assert (summary["answer/unanswered"], summary["answer/scored"]) == (1, 3)
    assert [one["question_id"] for one in rows] == ["a", "b", "c"]
    assert [one["f1"] for one in rows] == pytest.approx(f1)
    assert [(one["kind"], one["num_rounds"], one["calls"]) for one in rows] == [
        ("bridge", 3, 5),
        ("yes_no", 1, 2),
        ("bridge", 0, 1),
    ]


def test_lenient_accuracy_stands_beside_exact_match():
    summary, rows = score_run(ANSWERS, QUESTIONS, DOCUMENT_OF)
    # "the film director Tim Burton" ends in "Burton"; no answer is never right.
    assert [(one["em"], one["lenient"]) for one in rows] == [(0, 1), (1, 1), (0, 0)]
    assert summary["answer/lenient"] == pytest.approx(2 / 3)
    expected = mean_interval([1.0, 1.0, 0.0])
    interval = (summary["answer/lenient/low"], summary["answer/lenient/high"])
    assert interval == (expected.low, expected.high)


def test_scores_of_answers_and_retrieval_have_intervals():
    summary, rows = score_run(ANSWERS, QUESTIONS, DOCUMENT_OF)
    expected = mean_interval([one["f1"] for one in rows])
    assert (summary["answer/f1/low"], summary["answer/f1/high"]) == (expected.low, expected.high)
    assert "retrieval/recall@5/low" in summary
    # Counts and costs have none.
    assert not [key for key in summary if key.startswith("cost/") and key.endswith("/low")]
    assert "answer/scored/low" not in summary


def test_r19_no_score_is_nan():
    summary, _ = score_run(ANSWERS, QUESTIONS, DOCUMENT_OF)
    assert all(value == value for value in summary.values())


def test_a_closed_book_has_no_retrieval():
    answers = [row(question.id, "yes") for question in QUESTIONS]
    summary, rows = score_run(answers, QUESTIONS, {})
    assert not [key for key in summary if key.startswith("retrieval/")]
    assert "recall@5" not in rows[0]


def test_the_cutoffs_are_those_asked_for():
    summary, _ = score_run(ANSWERS, QUESTIONS, DOCUMENT_OF, cutoffs=[1])
    assert summary["retrieval/recall@1"] == pytest.approx(0.5 / 3)
    assert "retrieval/recall@5" not in summary


def test_r19_gold_that_the_corpus_lacks_is_refused():
    lacking = [*QUESTIONS[:2], Question("c", "?", ("1911",), "", (), ("lost",))]
    with pytest.raises(ValueError, match="1 gold documents of 1 questions are not in the corpus"):
        score_run(ANSWERS, lacking, DOCUMENT_OF)
    summary, _ = score_run(ANSWERS, lacking, DOCUMENT_OF, allow_unmatched=True)
    assert summary["retrieval/unmatched_gold"] == 1


def test_a_part_of_a_run_is_no_run():
    with pytest.raises(ValueError, match="1 questions have no prediction"):
        score_run(ANSWERS[:2], QUESTIONS, DOCUMENT_OF)
    with pytest.raises(ValueError, match="4 answers to 3 questions; expected one row a question"):
        score_run([*ANSWERS, ANSWERS[0]], QUESTIONS, DOCUMENT_OF)


def test_a_chunk_of_another_index_is_refused():
    with pytest.raises(KeyError, match="'c2' is in no document"):
        score_run(ANSWERS, QUESTIONS, {"c1": "d1", "c1b": "d1", "c4": "d4"})


def test_no_questions():
    summary, rows = score_run([], [], {})
    assert (rows, summary["rounds"], summary["errors"]) == ([], 0, 0)
    assert "answer/em" not in summary and "answer/lenient" not in summary


def test_the_share_of_the_graph_where_a_router_chose():
    sent = [ANSWERS[0] | {"route": "graph"}, ANSWERS[1] | {"route": "vanilla"}]
    summary, rows = score_run([*sent, ANSWERS[2]], QUESTIONS, DOCUMENT_OF)
    assert summary["routing/graph_ratio"] == 0.5
    assert [one.get("route") for one in rows] == ["graph", "vanilla", None]
    assert "routing/graph_ratio" not in score_run(ANSWERS, QUESTIONS, DOCUMENT_OF)[0]
