"""Decomposition: a question becomes query triplets with placeholders (T2RAG, section 3.2)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from triax.llm.ask import Reply, Unreadable, ask, conversation
from triax.records.completions import Completion, CompletionRequest, Grammar
from triax.records.query_triplets import QueryTriplet
from triax.records.questions import Question
from triax.records.triplet_text import parse_query_triplets
from triax.records.usage import Usage
from triax.records.verbs import Completer

SYSTEM = (
    "Write what must be known to answer the question as triplets, one a line: "
    "subject | predicate | object. Put a placeholder such as ?director where something is "
    "unknown, the same placeholder wherever the same thing is meant. Use as few triplets as "
    "needed, in the order in which they can be found. Write nothing else."
)
THINKING = (
    " Before them write one line that starts with 'Reasoning:' and says how the question can be "
    "answered step by step, then a line 'Triplets:'."
)
SHOTS = (
    (
        "Question: In which year was the bridge over the Firth of Forth opened?",
        "bridge over the Firth of Forth | opened in | ?year",
    ),
    (
        "Question: In which city was the author of The Leopard born?",
        "The Leopard | written by | ?author\n?author | born in | ?city",
    ),
    (
        "Question: Which film has the director who was born earlier, Vertigo or Stalker?",
        "Vertigo | directed by | ?director1\nStalker | directed by | ?director2\n"
        "?director1 | born on | ?date1\n?director2 | born on | ?date2",
    ),
    (
        "Question: Are the Danube and the Vistula rivers in the same country?",
        "Danube | flows through | ?country1\nVistula | flows through | ?country2",
    ),
)


@runtime_checkable
class Decomposer(Protocol):
    """Gives each question its query triplets; None and a reason where that failed."""

    async def decompose(
        self, questions: Sequence[Question]
    ) -> list[Reply[tuple[QueryTriplet, ...]]]: ...


@dataclass(frozen=True, slots=True)
class PromptedDecomposer:
    """Asks a language model. `grammar` constrains the lines, where the completer can."""

    completer: Completer
    grammar: Grammar | None = None
    max_triplets: int = 8
    max_tokens: int = 256
    thinks: bool = False
    system: str = SYSTEM
    shots: tuple[tuple[str, str], ...] = SHOTS

    async def decompose(
        self, questions: Sequence[Question]
    ) -> list[Reply[tuple[QueryTriplet, ...]]]:
        """One call a question, all at once; those without a triplet are asked once more."""
        requests = [self._request(question) for question in questions]
        return await ask(self.completer, requests, lambda i, one: self._read(questions[i], one))

    def _request(self, question: Question) -> CompletionRequest:
        return CompletionRequest(
            messages=conversation(
                self.system + (THINKING if self.thinks else ""),
                self.shots if not self.thinks else (),
                f"Question: {question.text}",
            ),
            max_tokens=self.max_tokens,
            grammar=None if self.thinks else self.grammar,
            stage="decompose",
            question_id=question.id,
        )

    def _read(self, question: Question, completion: Completion) -> tuple[QueryTriplet, ...]:
        text = completion.text or ""
        parsed = parse_query_triplets(
            text.rpartition("Triplets:")[2] if self.thinks else text,
            is_cut=completion.finish_reason == "length",
            source=question.text,
        )
        if not parsed.triplets:
            raise Unreadable(f"no line of the form subject | predicate | object ({parsed.reason})")
        return parsed.triplets[: self.max_triplets]


@dataclass(frozen=True, slots=True)
class GoldDecomposer:
    """Takes a question's own query triplets: the upper bound of decomposition, and for tests.

    It asks nothing; it takes a completer so that it can stand wherever a prompted one does.
    """

    completer: Completer | None = None

    async def decompose(
        self, questions: Sequence[Question]
    ) -> list[Reply[tuple[QueryTriplet, ...]]]:
        """Reads `gold_query_triplets`; a question without any is an error of that question."""
        return [
            Reply(question.gold_query_triplets, Usage())
            if question.gold_query_triplets
            else Reply(None, Usage(), error=f"question {question.id} has no gold query triplets")
            for question in questions
        ]
