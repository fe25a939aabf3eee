"""The kind of a question by rules over its words; the control of the trained classifier.

Source: the heuristic of "The Reasoning Bottleneck in Graph-RAG" (Zarinkia, Srinivasan, Thomo, 2026,
section 3.4), which knows comparisons by words such as both, same, or, born first; rules of our own.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from triax.records.question_types import QuestionType, TypeDecision
from triax.records.questions import Question

_RELATIVES = re.compile(
    r"\b(?:(?:paternal|maternal) )?(?:grand(?:father|mother|son|daughter|child|parent)s?"
    r"|(?:father|mother|brother|sister|son|daughter)s?-in-law|uncles?|aunts?|nephews?|nieces?"
    r"|cousins?|sibling-in-law|co-?(?:father|mother)-in-law|step-?(?:father|mother|son|daughter)s?)\b",
    re.IGNORECASE,
)
_COMPARES = re.compile(
    r"\bor\b.*\?*$|\bboth\b|\bthe same\b|\bsame (?:country|nationality|year|place|city)\b"
    r"|\bin common\b|^\W*(?:are|were|do|did) [^?]* and "
    r"|\bwhich (?:\w+ ){1,3}?(?:was|is|has|came|died|lived|born)\b.*,",
    re.IGNORECASE,
)
# "... whose director", "the director of film X": the compared things are reached over others.
_BRIDGED = re.compile(
    r"\b(?:director|performer|composer|author|creator|founder|spouse|husband|wife|father|mother)s?"
    r"(?:'s|s')?\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class RegexTypes:
    """Comparison where two things are weighed, inference where kinship must be put together.

    A comparison is a bridged one where what is compared belongs to somebody named by their part
    (the directors of two films); every other question is a bridge.
    """

    async def classify(self, questions: Sequence[Question]) -> list[TypeDecision]:
        """One decision a question, without a probability."""
        return [TypeDecision(type_by_rules(question.text)) for question in questions]


def type_by_rules(text: str) -> QuestionType:
    """The kind of one question.

    >>> type_by_rules("Which film came out first, Vertigo or Stalker?")
    'comparison'
    >>> type_by_rules("Who is the paternal grandfather of Mary of Modena?")
    'inference'
    """
    if _COMPARES.search(text):
        return "bridge_comparison" if _BRIDGED.search(text) else "comparison"
    return "inference" if _RELATIVES.search(text) else "bridge"
