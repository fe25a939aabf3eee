"""Lenient accuracy, as "The Reasoning Bottleneck in Graph-RAG" measures (2026, section 4).

It forgives what exact match does not, a longer form of the same name above all, so the two must not
share a column. Their third way, a language model as judge, is left out.
"""

from collections.abc import Sequence

from triax.scoring.answers import is_exact_match, normalize_answer

_MIN_LETTERS = 4


def is_lenient_match(prediction: str, answer: str) -> bool:
    """Whether two answers are the same once normalised, or end in the same word of 4 letters.

    >>> is_lenient_match("Alfred Hitchcock", "Sir Alfred Joseph Hitchcock")
    True
    >>> is_lenient_match("the USA", "North of USA"), is_lenient_match("1999", "in 1999")
    (False, False)
    """
    if is_exact_match(prediction, answer):
        return True
    given, gold = normalize_answer(prediction).split(), normalize_answer(answer).split()
    if not given or not gold or given[-1] != gold[-1]:
        return False
    return sum(letter.isalpha() for letter in gold[-1]) >= _MIN_LETTERS


def best_lenient(prediction: str, answers: Sequence[str]) -> float:
    """1.0 if any of the answers is matched leniently."""
    return float(any(is_lenient_match(prediction, answer) for answer in answers))
