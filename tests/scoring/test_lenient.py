import pytest
from hypothesis import given
from hypothesis import strategies as st

from triax.scoring.answers import is_exact_match
from triax.scoring.lenient import best_lenient, is_lenient_match


@pytest.mark.parametrize(
    ("prediction", "answer", "is_match"),
    [
        ("The Vertigo!", "vertigo", True),  # normalised
        ("Hitchcock", "Alfred Hitchcock", True),  # the last word
        ("Alfred", "Alfred Hitchcock", False),
        ("New York", "York", True),
        ("born in 1999", "in 1999", False),  # no letters
        ("some USA", "the USA", False),  # the last word has three
        ("x", "", False),
        ("no", "yes", False),
    ],
)
def test_the_rule_of_the_paper(prediction, answer, is_match):
    assert is_lenient_match(prediction, answer) is is_match
    assert is_lenient_match(answer, prediction) is is_match


@given(st.text(max_size=20), st.text(max_size=20))
def test_what_matches_exactly_matches_leniently(prediction, answer):
    if is_exact_match(prediction, answer):
        assert is_lenient_match(prediction, answer)


def test_any_of_the_answers_will_do():
    assert best_lenient("Hitchcock", ["Hitch", "Sir Alfred Hitchcock"]) == 1.0
    assert best_lenient("Hitchcock", []) == 0.0
