"""Lenient accuracy, as "The Reasoning Bottleneck in Graph-RAG" measures it without a judge.

Source: Zarinkia, Srinivasan, Thomo (2026), section 4, and `alias_equivalent` of their code. It
forgives what exact match does not, so the two must never share a column: accents and what stands in
brackets are left out, and the same last word of four characters or more is enough. Any name that
ends alike is right then, and any two dates of one year. Where that fails too, the paper asks a
language model; here nothing is asked, so a number of the paper is at least this.
"""

import re
import unicodedata
from collections.abc import Sequence

from triax.scoring.answers import is_exact_match, normalize_answer

MIN_LETTERS = 4
_BRACKETS = re.compile(r"\([^()]*\)")
# What the paper's answers say in place of one; none of them is the same as another text.
_NO_ANSWER = (
    "unknown",
    "not sure",
    "cannot determine",
    "cant tell",
    "i dont know",
    "i do not know",
)


def is_lenient_match(prediction: str, answer: str) -> bool:
    """Whether two answers are the same once normalised, or end in the same word.

    >>> is_lenient_match("Alfred Hitchcock", "Sir Alfred Joseph Hitchcock (director)")
    True
    >>> is_lenient_match("Café", "cafe"), is_lenient_match("3 May 1999", "in 1999")
    (True, True)
    >>> is_lenient_match("the USA", "North of USA")
    False
    """
    if is_exact_match(prediction, answer):
        return True
    given, gold = _plain(prediction), _plain(answer)
    if not given or not gold or given in _NO_ANSWER or gold in _NO_ANSWER:
        return False
    last = gold.split()[-1]
    return given == gold or (len(last) >= MIN_LETTERS and given.split()[-1] == last)


def best_lenient(prediction: str, answers: Sequence[str]) -> float:
    """1.0 if any of the answers is matched leniently."""
    return float(any(is_lenient_match(prediction, answer) for answer in answers))


def _plain(text: str) -> str:
    """Without brackets and accents, and normalised as for exact match."""
    bare = unicodedata.normalize("NFKD", _BRACKETS.sub("", text))
    return normalize_answer("".join(one for one in bare if not unicodedata.combining(one)))
