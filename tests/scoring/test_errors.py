import pytest

from triax.records.documents import Chunk, Document
from triax.records.questions import Question
from triax.scoring.answers import best_exact_match
from triax.scoring.error_classes import CLASSES
from triax.scoring.errors import decompose_errors, error_rows, summarise
from triax.scoring.lenient import best_lenient

CHUNKS = {"v": Chunk("v", "v", "Vertigo is by Alfred Hitchcock."), "x": Chunk("x", "x", "Other.")}
DOCUMENTS = {"v": Document("v", CHUNKS["v"].text, "Vertigo"), "x": Document("x", "Other.", "X")}
QUESTIONS = [
    Question("a", "Who made Vertigo?", ("Alfred Hitchcock",), "bridge", ("v",)),
    Question("b", "Who made Vertigo, they ask?", ("Alfred Hitchcock",), "bridge", ("v",)),
    Question("c", "Is it X?", ("yes",), "comparison", ("x",)),
    Question("d", "Not known?", ()),
]


def trace(answer, chunk_ids=("v",), error=None, final=None, **more):
    return {
        "answer": answer,
        "chunk_ids": list(chunk_ids),
        "error": error,
        "final": final,
        "rounds": [],
        "decomposition": [["Vertigo", "made by", "?who"]],
        **more,
    }


STATE = {"searchable": [], "fuzzy": []}
BOUND = STATE | {
    "resolved": [
        {"triplet": ["Vertigo", "made by", "Welles"], "chunk_ids": [], "round": 1},
    ]
}


def test_one_row_a_question_with_a_gold_answer():
    traces = {
        "a": trace("Hitchcock"),
        "b": trace("Welles", final=BOUND),
        "c": trace(None),
        "d": trace("x"),
    }
    rows = error_rows(traces, QUESTIONS, CHUNKS, DOCUMENTS, best_lenient)
    assert [row["question_id"] for row in rows] == ["a", "b", "c"]
    assert rows[0] == {
        "question_id": "a",
        "kind": "bridge",
        "right": True,
        "abstained": False,
        "m1": True,
        "m1_by": "answer",
        "m3": True,
        "m3_by": "titles",
        "answer_in_context": True,
        "state": None,
        "hallucinated": None,
        "class": None,
    }
    told = [(row["right"], row["abstained"], row["state"], row["class"]) for row in rows]
    # Welles is in no text, and the document that tells better was found.
    assert told[1:] == [(False, False, "resolved", "hallucination"), (False, True, None, None)]
    assert (rows[1]["hallucinated"], rows[2]["m1"], rows[2]["m1_by"]) == (True, False, "documents")
    strict = error_rows(traces, QUESTIONS, CHUNKS, DOCUMENTS, best_exact_match)
    assert not strict[0]["right"]


def test_what_was_read_beside_the_chunks_counts():
    traces = {one.id: trace("x", ["x"]) for one in QUESTIONS}
    traces["a"] |= {"context": ["A note: Alfred Hitchcock."]}
    rows = error_rows(traces, QUESTIONS, CHUNKS, DOCUMENTS, best_lenient)
    assert [row["m1"] for row in rows] == [True, False, True]


def test_a_closed_book_has_no_coverage():
    traces = {one.id: trace(" ", []) for one in QUESTIONS}
    traces["b"] |= {"error": "reading: down", "answer": None}
    rows = error_rows(traces, QUESTIONS, CHUNKS, DOCUMENTS, best_lenient)
    assert [(row["m1"], row["m3"], row["right"]) for row in rows] == [(None, None, False)] * 3
    # A blank says nothing; an error is no abstention.
    assert [row["abstained"] for row in rows] == [True, False, True]
    found = decompose_errors(rows)
    assert set(found) == {"all", "kind/bridge", "kind/comparison"}
    assert found["all"]["errors/abstained"] == pytest.approx(2 / 3)
    assert not [key for key in found["all"] if "m1" in key or "m3" in key or "class" in key]


def test_a_part_of_a_run_is_refused():
    with pytest.raises(ValueError, match="3 questions have no trace"):
        error_rows({"a": trace("x")}, QUESTIONS, CHUNKS, DOCUMENTS, best_lenient)


def row(right, m1, m3=None, **more):
    given = {"right": right, "m1": m1, "m3": m3, "abstained": False, "answer_in_context": m1}
    given |= {"kind": "", "state": None, "hallucinated": None, "class": None, "m1_by": "answer"}
    return given | more


def test_shares_by_hand():
    """Of 5: 3 covered by M1, of which 1 right; 4 wrong, of which 2 covered; M3 is known of 2."""
    rows = [
        row(True, True, True, state="resolved", hallucinated=False),
        row(False, True, False, state="resolved", hallucinated=True, **{"class": "synthesis"}),
        row(False, True, state="unresolved", hallucinated=False, **{"class": "unresolved"}),
        row(False, False, abstained=True, **{"class": "synthesis"}),
        row(False, False),
    ]
    found = summarise(rows)
    assert (found["count/questions"], found["count/wrong"]) == (5, 4)
    expected = {
        "accuracy": 1 / 5,
        "abstained": 1 / 5,
        "m1": 3 / 5,
        "answer_in_context": 3 / 5,
        "m1_accuracy": 1 / 3,
        "m1_reasoning": 2 / 4,
        "m3": 1 / 2,
        "m3_accuracy": 1 / 1,
        "m3_reasoning": 0 / 1,
        "hallucinated": 1 / 3,
        "class/synthesis": 2 / 3,
        "class/unresolved": 1 / 3,
        "class/failed": 0 / 3,
    }
    for name, value in expected.items():
        assert found[f"errors/{name}"] == pytest.approx(value), name
        assert found[f"errors/{name}/low"] <= value + 1e-12, name
        assert found[f"errors/{name}/high"] >= value - 1e-12, name
    assert sum(found[f"errors/class/{name}"] for name in CLASSES) == pytest.approx(1)
    # As figure 3 of T2RAG has it: by the state at the end.
    parts = decompose_errors(rows)
    assert parts["state/resolved"]["errors/accuracy"] == 0.5
    assert parts["state/unresolved"]["errors/accuracy"] == 0.0


# The counts in the authors' revision/coverage/summary.txt, over 500 questions each: covered by M1
# and M3, by M1 alone, by M3 alone, by neither; of each, how many and how many right. Behind them
# the published percentages: coverage, accuracy where covered, reasoning share of errors.
PAPER = {
    "hotpotqa 8B": (
        ((440, 311), (12, 5), (1, 0), (47, 19)),
        {"m1": (90.4, 69.9, 82.4), "m3": (88.2, 70.5, 78.8)},
    ),
    "2wikimultihopqa 8B": (
        ((301, 111), (104, 19), (29, 20), (66, 7)),
        {"m1": (81.0, 32.1, 80.2), "m3": (66.0, 39.7, 58.0)},
    ),
    "2wikimultihopqa 70B": (
        ((301, 194), (104, 28), (29, 17), (66, 5)),
        {"m1": (81.0, 54.8, 71.5), "m3": (66.0, 63.9, 46.5)},
    ),
    "musique 70B": (
        ((347, 152), (38, 3), (0, 0), (115, 21)),
        {"m1": (77.0, 40.3, 71.0), "m3": (69.4, 43.8, 60.2)},
    ),
}


@pytest.mark.parametrize("name", PAPER)
def test_the_numbers_of_the_paper(name):
    cells, published = PAPER[name]
    rows = []
    for (m1, m3), (count, right) in zip(
        ((True, True), (True, False), (False, True), (False, False)), cells, strict=True
    ):
        rows += [row(True, m1, m3)] * right + [row(False, m1, m3)] * (count - right)
    found = summarise(rows)
    assert found["count/questions"] == 500
    for metric, values in published.items():
        keys = (f"errors/{metric}", f"errors/{metric}_accuracy", f"errors/{metric}_reasoning")
        assert [round(100 * found[key], 1) for key in keys] == list(values)


def test_parts_are_counted_apart():
    rows = [
        row(True, True, kind="bridge"),
        row(False, False, kind="bridge"),
        row(False, True, kind="yes_no", m1_by="documents"),
    ]
    found = decompose_errors(rows)
    assert list(found) == [
        "all",
        "kind/bridge",
        "kind/yes_no",
        "m1_by/answer",
        "m1_by/documents",
    ]
    assert found["m1_by/answer"]["errors/m1_reasoning"] == 0.0
    assert found["m1_by/documents"]["errors/m1_reasoning"] == 1.0
    assert list(decompose_errors(rows[:1])) == ["all"]


def test_the_order_of_the_questions_does_not_matter():
    rows = [row(n % 3 == 0, n % 2 == 0) for n in range(30)]
    assert summarise(rows) == summarise(rows[::-1])


def test_r29_what_no_row_tells_is_absent():
    found = summarise([row(True, None)])
    assert "errors/m1" not in found and "errors/class/synthesis" not in found
    assert summarise([]) == {"count/questions": 0, "count/wrong": 0}
