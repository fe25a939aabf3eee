"""GeAR's agent: from the triplets that were gathered, can the question be answered, or what next?

Source: GeAR (Shen et al., 2024, section 3.3): a gist memory of triplets, a decision, and a query
for what is missing.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from triax.llm.ask import Reply, Unreadable, ask, conversation
from triax.reasoning.answer_text import first_line, without_thinking
from triax.records.completions import Completion, CompletionRequest
from triax.records.questions import Question
from triax.records.verbs import Completer

SYSTEM = (
    "You are given facts and a question. If the facts are enough to answer the question, write: "
    "enough. If not, write: search: and a short question that asks for the missing fact."
)
SHOTS = (
    (
        "Facts:\nQuellmoor written by Ottoline Varnhagen-Pryce\n\n"
        "Question: In which town was the author of Quellmoor born?",
        "search: Where was Ottoline Varnhagen-Pryce born?",
    ),
    (
        "Facts:\nLake Osel has maximum depth 212 m\nHartmere is at most 96 m deep\n\n"
        "Question: Which lake is deeper, Osel or Hartmere?",
        "enough",
    ),
)
_SEARCH = re.compile(r"(?i)\bsearch\s*:\s*(\S.*)")
_ENOUGH = re.compile(r"(?i)\W*enough\b")


@dataclass(frozen=True, slots=True)
class Decision:
    """What to search next; None where the facts are enough."""

    query: str | None


@dataclass(frozen=True, slots=True)
class GistDecider:
    """Asks a language model, one call for each question."""

    completer: Completer
    max_tokens: int = 64

    async def decide(
        self, questions: Sequence[Question], gists: Sequence[Sequence[str]]
    ) -> list[Reply[Decision]]:
        """One decision a question, from the facts that were gathered for it."""
        requests = [
            CompletionRequest(
                conversation(SYSTEM, SHOTS, _shown(question, gist)),
                self.max_tokens,
                stage="decide",
                question_id=question.id,
            )
            for question, gist in zip(questions, gists, strict=True)
        ]
        return await ask(self.completer, requests, lambda _, text: read_decision(text))


def read_decision(completion: Completion) -> Decision:
    """The query behind `search:`, or that there is enough.

    Raises:
        Unreadable: neither is there.
    """
    text = without_thinking(completion.text or "")
    if found := _SEARCH.search(text):
        if query := first_line(found[1]):
            return Decision(query)
    if _ENOUGH.match(text):
        return Decision(None)
    raise Unreadable("neither `enough` nor `search:` with a question")


def _shown(question: Question, gist: Sequence[str]) -> str:
    facts = "\n".join(gist) or "none"
    return f"Facts:\n{facts}\n\nQuestion: {question.text}"
