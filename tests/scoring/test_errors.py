import pytest

from triax.records.query_triplets import QueryTriplet
from triax.records.questions import Question, Step
from triax.records.triplets import Triplet
from triax.scoring.answers import normalize_answer
from triax.scoring.errors import (
    CLASSES,
    bridging_entities,
    coverage,
    error_class,
    holds,
    is_resolved,
    summarise,
)

STEPS = (Step("Who directed Vertigo?", "Alfred Hitchcock"), Step("Where was #1 born?", "London"))
QUESTION = Question(
    "q", "Where was the director of Vertigo born?", ("London",), "bridge", ("v", "h"), steps=STEPS
)


def test_names_are_found_at_the_ends_of_words():
    context = normalize_answer("The U.S. film by Hitchcock's wife.")
    assert holds(context, "US") and holds(context, "film, by")
    assert not holds(context, "Hitchcock") and not holds(context, "") and not holds(context, "the")


@pytest.mark.parametrize(
    ("texts", "documents", "m1", "m3"),
    [
        (["He is from London.", "Vertigo is by Alfred Hitchcock"], ["v"], True, True),
        (["He is from London."], ["v", "h"], True, False),
        (["Alfred Hitchcock"], ["v", "h"], False, False),
        ([], [], False, False),
    ],
)
def test_m1_asks_for_the_answer_and_m3_for_all_on_the_way(texts, documents, m1, m3):
    found = coverage(QUESTION, texts, documents)
    assert (found["m1"], found["m1_by"]) == (m1, "answer")
    assert (found["m3"], found["m3_by"]) == (m3, "steps")


def test_yes_and_no_stand_in_no_text():
    polar = Question("p", "Is it?", ("yes",), gold_document_ids=("v", "h"))
    for documents, covered in ((["h", "v", "x"], True), (["v"], False)):
        found = coverage(polar, ["yes, yes"], documents)
        assert found == {"m1": covered, "m1_by": "documents", "m3": covered, "m3_by": "documents"}
    assert coverage(Question("p", "Is it?", ("no",)), ["no"], [])["m1"] is None


def test_entities_come_from_steps_or_triplets():
    assert bridging_entities(QUESTION) == ("Alfred Hitchcock", "London")
    triplets = (Triplet("Vertigo", "by", "Hitchcock"), Triplet("hitchcock", "born in", "London"))
    asked = Question("t", "?", ("London",), gold_triplets=triplets)
    assert bridging_entities(asked) == ("Vertigo", "Hitchcock", "London")
    assert coverage(asked, ["Vertigo Hitchcock London"], [])["m3_by"] == "triplets"
    assert bridging_entities(Question("n", "?", steps=(Step("is it?", "yes"),))) == ()


def resolved(*fields, chunk_ids=("c",), number=1):
    return {"triplet": list(fields), "chunk_ids": list(chunk_ids), "round": number}


def trace(*known, searchable=(), fuzzy=(), error=None, decomposition=()):
    final = {"resolved": list(known), "searchable": list(searchable), "fuzzy": list(fuzzy)}
    return {"error": error, "final": final, "decomposition": [list(one) for one in decomposition]}


BY = resolved("Vertigo", "directed by", "Alfred Hitchcock")
BORN = resolved("Alfred Hitchcock", "born in", "London")
OPEN = ["?who", "born in", "?where"]


@pytest.mark.parametrize(
    ("found", "documents", "name"),
    [
        (trace(BY, BORN, error="down"), ["v", "h"], "failed"),
        (trace(BY, BORN), ["v"], "missing_retrieval"),
        (trace(BY, searchable=[OPEN]), ["v"], "missing_retrieval"),
        (trace(BY, searchable=[OPEN]), ["v", "h"], "unresolved"),
        (trace(BY, fuzzy=[OPEN]), ["h", "v"], "unresolved"),
        (
            trace(BY, resolved("Alfred Hitchcock", "born in", "Paris", chunk_ids=())),
            ["v", "h"],
            "hallucination",
        ),
        (
            trace(BY, resolved("Alfred Hitchcock", "born in", "Leyton")),
            ["v", "h"],
            "wrong_resolution",
        ),
        (trace(BY, BORN), ["v", "h"], "synthesis"),
        # What was known from the question needs no source.
        (trace(BY, BORN, resolved("a", "b", "c", chunk_ids=(), number=0)), ["v", "h"], "synthesis"),
    ],
)
def test_each_class_by_hand(found, documents, name):
    assert error_class(QUESTION, found, documents) == name and name in CLASSES


def test_a_wrong_decomposition_comes_first():
    gold = (
        QueryTriplet.parse("Vertigo", "directed by", "?d"),
        QueryTriplet.parse("?d", "born", "?p"),
    )
    asked = Question("q", "?", ("London",), gold_document_ids=("v",), gold_query_triplets=gold)
    same = [("Vertigo", "director", "?x"), ("?x", "born in", "?y")]
    assert error_class(asked, trace(decomposition=same[:1]), []) == "decomposition"
    assert error_class(asked, trace(decomposition=same), []) == "missing_retrieval"


def test_without_gold_or_without_a_state():
    bare = Question("b", "?", ("London",))
    assert error_class(bare, trace(BY), []) == "other"
    vanilla = {"error": None, "final": None, "decomposition": []}
    assert error_class(bare, vanilla, []) is None and is_resolved(vanilla) is None
    assert is_resolved(trace(BY)) is True and is_resolved(trace(fuzzy=[OPEN])) is False


def row(right, m1, m3=None, *, answered=True, resolved=None, name=None):
    return {
        "right": right,
        "answered": answered,
        "m1": m1,
        "m3": m3,
        "resolved": resolved,
        "class": name,
    }


def test_shares_by_hand():
    """Of 5: 3 covered by M1, of which 1 right; 4 wrong, of which 2 covered; M3 is known of 2."""
    rows = [
        row(True, True, True, resolved=True),
        row(False, True, False, resolved=True, name="synthesis"),
        row(False, True, resolved=False, name="unresolved", answered=False),
        row(False, False, name="synthesis"),
        row(False, False),
    ]
    found = summarise(rows)
    assert found["questions"] == 5 and found["errors/accuracy"] == pytest.approx(0.2)
    assert found["errors/abstained"] == pytest.approx(0.2)
    assert found["errors/m1"] == pytest.approx(0.6)
    assert found["errors/m1_accuracy"] == pytest.approx(1 / 3)
    assert found["errors/m1_reasoning"] == pytest.approx(0.5)
    assert found["errors/m3"] == 0.5 and found["errors/m3_reasoning"] == 0.0
    assert found["errors/resolved_accuracy"] == 0.5 and found["errors/unresolved_accuracy"] == 0.0
    assert found["errors/synthesis"] == pytest.approx(2 / 3)
    assert sum(found[f"errors/{name}"] for name in CLASSES) == pytest.approx(1)
    assert found["errors/m1/low"] <= 0.6 <= found["errors/m1/high"]


def test_the_arithmetic_of_the_paper():
    """HotpotQA, 8B (table of the error decomposition): coverage 90.4 %, accuracy where covered
    69.9 %, reasoning share of errors 82.4 %, accuracy 67.0 %, of 500 questions."""
    covered, right = 452, 335
    right_covered = round(0.699 * covered)
    rows = [row(True, True)] * right_covered + [row(False, True)] * (covered - right_covered)
    rows += [row(True, False)] * (right - right_covered)
    rows += [row(False, False)] * (500 - len(rows))
    found = summarise(rows)
    assert found["errors/m1"] == pytest.approx(0.904, abs=5e-4)
    assert found["errors/accuracy"] == pytest.approx(0.670, abs=5e-4)
    assert found["errors/m1_reasoning"] == pytest.approx(0.824, abs=2e-3)


def test_r29_what_no_row_tells_is_absent():
    found = summarise([row(True, None)])
    assert "errors/m1" not in found and "errors/synthesis" not in found
    assert summarise([]) == {"questions": 0.0}
