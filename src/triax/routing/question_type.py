"""The kind of a question by rules over its words; the control of the trained classifier.

Source: the heuristic of "The Reasoning Bottleneck in Graph-RAG" (Zarinkia, Srinivasan, Thomo, 2026,
section 3.4), which knows comparisons by words such as both, same, or, born first; rules of our own.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from triax.records.question_types import QuestionType, TypeDecision
from triax.records.questions import Question

# Roles and relatives in small letters only: titles are full of them, and begin with capitals.
_RELATIVES = re.compile(
    r"\b(?:grand(?:father|mother|son|daughter|child|parent)s?"
    r"|(?:father|mother|brother|sister|son|daughter|child|sibling)s?-in-law"
    r"|uncles?|aunts?|nephews?|nieces?|cousins?|step-?(?:father|mother|son|daughter)s?)\b"
    # A parent of somebody who is named, where nothing else is asked.
    r"|^\W*[Ww]ho (?:is|was) (?:the )?(?:father|mother) of [A-Z]"
    r"|^\W*[Ww]ho (?:is|was) [A-Z][^?]*'s (?:father|mother)\W*$"
)
_COMPARES = re.compile(
    r"\bor\b|\bboth\b|\bthe same\b|\bin common\b|\bfirst out of\b|^\W*(?:in )?between\b"
    r"|^\W*(?:is|are|was|were|do|does|did|has|have) ",
    re.IGNORECASE,
)
# "... whose director", "the director of film X": the compared things are reached over others.
_BRIDGED = re.compile(
    r"\b(?:the|both|whose|[Aa]re|[Dd]o|[Dd]id|[Hh]ave|[Ww]ere)"
    r" (?:director|producer|performer|composer|author|creator|founder)s?\b"
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
