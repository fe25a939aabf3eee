import doctest

import pytest
from hypothesis import given
from hypothesis import strategies as st

from triax.scoring import lenient
from triax.scoring.answers import is_exact_match
from triax.scoring.lenient import best_lenient, is_lenient_match


def test_examples_in_the_docstrings():
    results = doctest.testmod(lenient)
    assert results.attempted >= 3 and results.failed == 0


@pytest.mark.parametrize(
    ("prediction", "answer", "is_match"),
    [
        ("The Vertigo!", "vertigo", True),  # normalised
        ("Hitchcock", "Alfred Hitchcock", True),  # the last word
        ("Alfred", "Alfred Hitchcock", False),
        ("Vertigo (film)", "Vertigo", True),  # without brackets
        ("Bogotá", "Bogota", True),  # without accents
        ("born in 1999", "3 May 1999", True),  # four characters
        ("some USA", "North of USA", False),  # three
        ("x", "", False),
        ("no", "yes", False),
        ("I don't know", "The men who know", False),
        ("Unknown", "The Unknown", True),  # the same once normalised
        ("the great unknown", "unknown", False),  # no answer is no name
    ],
)
def test_the_rule_of_the_paper(prediction, answer, is_match):
    assert is_lenient_match(prediction, answer) is is_match
    assert is_lenient_match(answer, prediction) is is_match


@given(st.text(max_size=20), st.text(max_size=20))
def test_what_matches_exactly_matches_leniently(prediction, answer):
    assert is_lenient_match(prediction, prediction)
    assert is_lenient_match(prediction, answer) or not is_exact_match(prediction, answer)


def test_r24_brackets_that_never_close_are_text():
    assert not is_lenient_match("(" * 50_000 + "a", "b")


def test_any_of_the_answers_will_do():
    assert best_lenient("Hitchcock", ["Hitch", "Sir Alfred Hitchcock"]) == 1.0
    assert best_lenient("Hitchcock", []) == 0.0
