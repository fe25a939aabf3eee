"""Of which kind a question is: what a way of reading is chosen by."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, get_args, runtime_checkable

from triax.records.questions import Question
from triax.records.usage import Usage

QuestionType = Literal["bridge", "comparison", "bridge_comparison", "inference"]
QUESTION_TYPES: tuple[QuestionType, ...] = get_args(QuestionType)


@dataclass(frozen=True, slots=True)
class TypeDecision:
    """The kind of a question, how probable it is (None: not said), and what it cost to tell."""

    kind: str
    probability: float | None = None
    usage: Usage = Usage()


@runtime_checkable
class TypeClassifier(Protocol):
    """Says of which kind questions are, in order."""

    async def classify(self, questions: Sequence[Question]) -> list[TypeDecision]: ...


def gold_type(kind: str) -> QuestionType | None:
    """The kind that a data set says, in our words; None where it is another, or not said.

    HotpotQA has bridge and comparison; 2WikiMultiHopQA compositional, comparison,
    bridge_comparison and inference; MuSiQue only names hops, all of them bridges.

    >>> gold_type("compositional"), gold_type("3hop1"), gold_type("None")
    ('bridge', 'bridge', None)
    """
    if kind == "compositional" or kind[1:4] == "hop":
        return "bridge"
    return next((one for one in QUESTION_TYPES if one == kind), None)
