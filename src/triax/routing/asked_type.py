"""A language model says of which kind a question is: one short call each.

Source: "The Reasoning Bottleneck in Graph-RAG" (Zarinkia, Srinivasan, Thomo, 2026, section 3.4),
which asks for one word and takes what it cannot read for a bridge; in our own words.
"""

import re
from collections.abc import Sequence

from triax.llm.ask import conversation
from triax.llm.ledger import usage_of
from triax.records.completions import CompletionRequest
from triax.records.question_types import QUESTION_TYPES, TypeDecision
from triax.records.questions import Question
from triax.records.verbs import Completer

SYSTEM = (
    "Say of which kind a question is, with one word. bridge: the answer is reached over something "
    "that is described and not named. comparison: two named things are weighed against each other, "
    "or asked what they share. bridge_comparison: the same of things that are only described. "
    "inference: a relation between relatives must be put together from others."
)
SHOTS = (
    ("Question: In which city was the author of The Leopard born?", "bridge"),
    ("Question: Which river is longer, the Danube or the Vistula?", "comparison"),
    (
        "Question: Which film has the director who was born earlier, Vertigo or Stalker?",
        "bridge_comparison",
    ),
    ("Question: Who is the paternal grandmother of Edward VI?", "inference"),
)
_WORD = re.compile(r"[a-z_]+")


class AskedTypes:
    """Asks; an answer that names no kind, and a failed call, is a bridge; `num_unread` counts."""

    def __init__(self, completer: Completer, max_tokens: int = 8) -> None:
        """Takes the model and the longest answer; the longest name has several tokens."""
        self.num_unread = 0
        self._completer = completer
        self._max_tokens = max_tokens

    async def classify(self, questions: Sequence[Question]) -> list[TypeDecision]:
        """One call a question, all at once."""
        requests = [
            CompletionRequest(
                conversation(SYSTEM, SHOTS, f"Question: {one.text}"),
                self._max_tokens,
                stage="question_type",
                question_id=one.id,
            )
            for one in questions
        ]
        found = await self._completer.complete(requests)
        kinds = [read_type(one.text or "") for one in found]
        self.num_unread += kinds.count(None)
        return [
            TypeDecision(kind or "bridge", None, usage_of([one]))
            for kind, one in zip(kinds, found, strict=True)
        ]


def read_type(text: str) -> str | None:
    """The first kind that an answer names.

    >>> read_type("**Bridge-comparison**."), read_type("It is a comparison"), read_type("hm")
    ('bridge_comparison', 'comparison', None)
    """
    words = _WORD.findall(text.casefold().replace("-", "_").replace("bridge comp", "bridge_comp"))
    return next((one for one in words if one in QUESTION_TYPES), None)
