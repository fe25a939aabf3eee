"""The last call: resolved triplets, or passages, become a short answer (T2RAG, section 3.4)."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from triax.llm.ask import Reply, Unreadable, ask, conversation
from triax.reasoning.answer_text import first_line, is_abstention, without_thinking
from triax.reasoning.context import Budget, render_evidence
from triax.records.completions import Completion, CompletionRequest, Grammar
from triax.records.evidence import Evidence
from triax.records.query_triplets import QueryTriplet
from triax.records.questions import Question
from triax.records.state import State
from triax.records.verbs import Completer

SYSTEM = (
    "Answer the question with a name, a date, a number, yes or no, and nothing else. Use the "
    "facts or passages where there are some. If you cannot know, answer: unknown"
)
TRIPLET_SHOTS = (
    (
        "Facts:\nThe Leopard | written by | Giuseppe Tomasi di Lampedusa\n"
        "Giuseppe Tomasi di Lampedusa | born in | Palermo\n\n"
        "Question: In which city was the author of The Leopard born?",
        "Palermo",
    ),
    (
        "Facts:\nVertigo | directed by | Alfred Hitchcock\nStalker | directed by | Andrei "
        "Tarkovsky\nAlfred Hitchcock | born on | 13 August 1899\nAndrei Tarkovsky | born on | "
        "4 April 1932\n\nQuestion: Was the director of Vertigo born before that of Stalker?",
        "yes",
    ),
)
PASSAGE_SHOTS = (
    (
        "Passages:\n[1] The Leopard\nThe Leopard is a novel by Giuseppe Tomasi di Lampedusa.\n\n"
        "Question: Who wrote The Leopard?",
        "Giuseppe Tomasi di Lampedusa",
    ),
)
QUESTION_SHOTS = (
    ("Question: Who wrote The Leopard?", "Giuseppe Tomasi di Lampedusa"),
    ("Question: Is Palermo in Sicily?", "yes"),
)
# With a colon anywhere; "The answer is Palermo" only where a line starts so.
_MARKER = re.compile(
    r"(?:the\s+)?(?:final\s+)?answer\s*(?:is)?\s*:|^\W*the\s+(?:final\s+)?answer\s+is\b",
    re.IGNORECASE | re.MULTILINE,
)


@dataclass(frozen=True, slots=True)
class Short:
    """A short answer; `text` is None where the model abstained, which is no failure (R17)."""

    text: str | None


@dataclass(frozen=True, slots=True)
class Ending:
    """A question after its last round: what was asked, what is known, what was found last."""

    question: Question
    decomposition: tuple[QueryTriplet, ...]
    state: State
    evidence: Evidence


@runtime_checkable
class Synthesizer(Protocol):
    """Answers from the triplets that are known at the end."""

    async def synthesize(self, endings: Sequence[Ending]) -> list[Reply[Short]]: ...


@dataclass(frozen=True, slots=True)
class PromptedSynthesizer:
    """Asks a language model; the open searchable triplets stand beside the resolved ones."""

    completer: Completer
    max_tokens: int = 24
    grammar: Grammar | None = None
    system: str = SYSTEM
    shots: tuple[tuple[str, str], ...] = TRIPLET_SHOTS

    async def synthesize(self, endings: Sequence[Ending]) -> list[Reply[Short]]:
        """One call a question, all at once."""
        questions = [ending.question for ending in endings]
        prompts = [f"{_facts(ending.state)}{_asked(ending.question)}" for ending in endings]
        return await _short(self, "synthesize", questions, prompts, [self.shots] * len(endings))


@runtime_checkable
class Reader(Protocol):
    """Answers from passages, or from nothing: the last step of the vanilla pipelines."""

    async def read(self, items: Sequence[tuple[Question, Evidence]]) -> list[Reply[Short]]: ...


@dataclass(frozen=True, slots=True)
class PromptedReader:
    """Asks a language model, with the passages or without any.

    `shots` are the worked examples where there is evidence, `closed_shots` where there is none.
    """

    completer: Completer
    budget: Budget = Budget()
    max_tokens: int = 24
    grammar: Grammar | None = None
    system: str = SYSTEM
    shots: tuple[tuple[str, str], ...] = PASSAGE_SHOTS
    closed_shots: tuple[tuple[str, str], ...] = QUESTION_SHOTS

    async def read(self, items: Sequence[tuple[Question, Evidence]]) -> list[Reply[Short]]:
        """One call a question, all at once."""
        prompts, shots = [], []
        for question, evidence in items:
            shown = render_evidence(evidence, self.budget)
            prompts.append(f"{shown}\n\nQuestion: {question.text}" if shown else _asked(question))
            shots.append(self.shots if shown else self.closed_shots)
        return await _short(self, "read", [item[0] for item in items], prompts, shots)


async def _short(
    asker: "PromptedSynthesizer | PromptedReader",
    stage: str,
    questions: Sequence[Question],
    prompts: Sequence[str],
    shots: Sequence[tuple[tuple[str, str], ...]],
) -> list[Reply[Short]]:
    requests = [
        CompletionRequest(
            messages=conversation(asker.system, shown, prompt),
            max_tokens=asker.max_tokens,
            grammar=asker.grammar,
            stage=stage,
            question_id=question.id,
        )
        for question, prompt, shown in zip(questions, prompts, shots, strict=True)
    ]
    return await ask(asker.completer, requests, lambda _, completion: read_short(completion))


def _asked(question: Question) -> str:
    return f"Question: {question.text}"


def _facts(state: State) -> str:
    known = [" | ".join(one.triplet.fields) for one in state.resolved]
    still_open = [str(query) for query in state.searchable]
    facts = "\n".join(known + still_open)
    return f"Facts:\n{facts}\n\n" if facts else ""


def read_short(completion: Completion) -> Short:
    """Takes the first line after the last `Answer:` if there is one, else the first line.

    Raises:
        Unreadable: nothing but blanks, or nothing but thinking.
    """
    text = without_thinking(completion.text or "")
    marked = list(_MARKER.finditer(text))
    line = first_line(text[marked[-1].end() :] if marked else text)
    if not line:
        raise Unreadable("an empty answer; expected a name, a date, a number, yes or no")
    return Short(None if is_abstention(line) else line)
