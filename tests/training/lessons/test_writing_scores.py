import pytest

from triax.training.lessons.texts import Lesson
from triax.training.lessons.writing_scores import score_written


def lesson(assignment, target):
    return Lesson(assignment, "", target, "d", "1")


def test_decompositions_may_differ_in_names_order_and_small_words():
    gold = lesson("decompose", "Brand | author | ?a\n?a | place of birth | ?b")
    pairs = [
        ("?y | the place of birth | ?x\nBrand | author of | ?y", gold),
        ("Brand | writer | ?a\n?a | place of birth | ?b", gold),
        ("nothing at all", gold),
        ("Brand | author | ?a", gold),
    ]
    scores = score_written("decompose", pairs)
    assert scores == {"exact": 0.25, "equal_arguments": 0.5, "parsed": 0.75}


@pytest.mark.parametrize("assignment", ["resolve", "answer"])
def test_values_are_compared_as_squad_does(assignment):
    pairs = [
        ("the Henrik Ibsen.", lesson(assignment, "Henrik Ibsen")),
        ("Ibsen", lesson(assignment, "Henrik Ibsen")),
    ]
    # F1 of one of two words: precision 1, recall 1/2.
    assert score_written(assignment, pairs) == {"exact": 0.5, "f1": pytest.approx((1 + 2 / 3) / 2)}


def test_extractions_are_sets_of_triplets():
    gold = lesson("extract", "a | b | c\nd | e | f")
    pairs = [("A | b | c\nx | y | z\nd | e | f", gold), ("none", gold)]
    # 2 of 3 said are true, 2 of 2 true are said: F1 0.8; and 0.
    assert score_written("extract", pairs) == {"exact": pytest.approx(0.4)}


def test_nothing_is_not_exact():
    assert score_written("answer", []) == {"exact": 0.0}
