"""The next question that must be answered first, or the final answer.

Source: Self-Ask (Press et al., 2023, section 3).
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from triax.llm.ask import Reply, Unreadable, ask, conversation
from triax.reasoning.answer_text import first_line, without_thinking
from triax.reasoning.synthesize import Short
from triax.reasoning.thought import read_conclusion, with_answers_joined
from triax.records.completions import Completion, CompletionRequest
from triax.records.questions import Question
from triax.records.text import clean
from triax.records.verbs import Completer

SYSTEM = (
    "A question is answered by way of simpler ones. Each turn, write one line. Write 'Follow up:' "
    "and the next question whose answer is needed, complete in itself and with full names; its "
    "answer then follows as 'Intermediate answer:'. Or, once nothing is missing, write 'So the "
    "final answer is:' and a name, a date, a number, yes or no."
)
SHOTS: tuple[tuple[str, str], ...] = (
    (
        "Question: In which city was the author of The Leopard born?",
        "Follow up: Who is the author of The Leopard?",
    ),
    (
        "Intermediate answer: Giuseppe Tomasi di Lampedusa",
        "Follow up: In which city was Giuseppe Tomasi di Lampedusa born?",
    ),
    ("Intermediate answer: Palermo", "So the final answer is: Palermo"),
    (
        "Question: Was the director of Vertigo born before that of Stalker?",
        "Follow up: Who is the director of Vertigo?",
    ),
    ("Intermediate answer: Alfred Hitchcock", "Follow up: Who is the director of Stalker?"),
    ("Intermediate answer: Andrei Tarkovsky", "Follow up: When was Alfred Hitchcock born?"),
    ("Intermediate answer: 13 August 1899", "Follow up: When was Andrei Tarkovsky born?"),
    ("Intermediate answer: 4 April 1932", "So the final answer is: yes"),
)

_FOLLOW_UP = re.compile(
    r"[ \t>*#_-]*follow[ -]?up(?:[ \t]+question)?[ \t]*\d*[ \t*_]*:[ \t*_]*(?P<asked>.*)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Asked:
    """A follow-up question and its answer; None where none was found."""

    text: str
    answer: str | None


@dataclass(frozen=True, slots=True)
class FollowUp:
    """The next question, or the final answer where there is no next."""

    text: str = ""
    final: Short | None = None


@runtime_checkable
class Asker(Protocol):
    """Says for each question, after its follow-ups so far, what to ask next, in order."""

    async def ask(
        self, items: Sequence[tuple[Question, Sequence[Asked]]]
    ) -> list[Reply[FollowUp]]: ...


@dataclass(frozen=True, slots=True)
class PromptedAsker:
    """Asks a language model; follow-ups and their answers are the turns of a conversation."""

    completer: Completer
    max_tokens: int = 64
    system: str = SYSTEM
    shots: tuple[tuple[str, str], ...] = SHOTS

    async def ask(self, items: Sequence[tuple[Question, Sequence[Asked]]]) -> list[Reply[FollowUp]]:
        """One call a question, all at once; an answer of another form is asked again once."""
        requests = []
        for question, asked in items:
            answers = [f"Intermediate answer: {one.answer or 'not found'}" for one in asked]
            turns = [f"Question: {question.text}", *answers]
            done = [(turn, f"Follow up: {one.text}") for turn, one in zip(turns, asked)]
            requests.append(
                CompletionRequest(
                    messages=conversation(self.system, (*self.shots, *done), turns[-1]),
                    max_tokens=self.max_tokens,
                    stage="follow_up",
                    question_id=question.id,
                )
            )
        return await ask(self.completer, requests, lambda _, one: read_follow_up(one))


def read_follow_up(completion: Completion) -> FollowUp:
    """The first line of an answer that asks a follow-up question or gives the final answer.

    What follows is left out: a model may go on and invent intermediate answers. A bare question
    that begins an answer is a follow-up too.

    Raises:
        Unreadable: no such line.
    """
    text = with_answers_joined(clean(without_thinking(completion.text or "")))
    for line in text.splitlines():
        found = _FOLLOW_UP.match(line)
        if found and (asked := first_line(found["asked"])):
            return FollowUp(asked)
        if (answer := read_conclusion(line)) is not None:
            return FollowUp(final=answer)
    if (line := first_line(text)).endswith("?"):
        return FollowUp(line)
    raise Unreadable("neither 'Follow up:' and a question nor 'So the final answer is:'")
