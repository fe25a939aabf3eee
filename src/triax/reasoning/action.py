"""Thought and action in one: a model says what it wants to do next, and why.

Source: ReAct (Yao et al., 2023, section 3): search, look up, finish. The passages that a retriever
finds stand for Wikipedia's page.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, runtime_checkable

from triax.extraction.sentences import split_sentences
from triax.llm.ask import Reply, Unreadable, ask, conversation
from triax.reasoning.answer_text import first_line, without_thinking
from triax.reasoning.context import Budget, render_evidence
from triax.records.completions import Completion, CompletionRequest
from triax.records.evidence import Evidence
from triax.records.questions import Question
from triax.records.text import clean, normalise
from triax.records.verbs import Completer

Verb = Literal["search", "lookup", "finish"]

SYSTEM = (
    "You answer a question by looking things up. Each turn, write a line 'Thought:' that says what "
    "is known and what is missing, then a line 'Action:' with one of three actions. search[text] "
    "brings passages about the text. lookup[word] brings the next sentence of these passages that "
    "holds the word. finish[answer] ends with the answer: a name, a date, a number, yes, no, or "
    "unknown. Stop after the action; what it brings follows as 'Observation:'."
)
SHOTS: tuple[tuple[str, str], ...] = (
    (
        "Question: In which city was the author of The Leopard born?",
        "Thought: The author of The Leopard must be found first.\nAction: search[The Leopard]",
    ),
    (
        "Observation:\nPassages:\n[1] The Leopard\nThe Leopard is a novel by Giuseppe Tomasi di "
        "Lampedusa. It was published in 1958.",
        "Thought: Giuseppe Tomasi di Lampedusa wrote it; his place of birth is missing.\n"
        "Action: search[Giuseppe Tomasi di Lampedusa]",
    ),
    (
        "Observation:\nPassages:\n[1] Giuseppe Tomasi di Lampedusa\nGiuseppe Tomasi, Prince of "
        "Lampedusa, was a Sicilian writer who published little in his life \u2026",
        "Thought: The passage is about him and may say where he was born.\nAction: lookup[born]",
    ),
    (
        "Observation:\n(1 of 1) He was born in Palermo in December 1896",
        "Thought: He was born in Palermo.\nAction: finish[Palermo]",
    ),
)

_VERBS: dict[str, Verb] = {"search": "search", "lookup": "lookup", "finish": "finish"}
_NAMES = r"(?P<verb>search|look[ -]?up|finish)"
# With brackets anywhere; without them only behind `Action:`.
_FORMS = (
    re.compile(rf"\b{_NAMES}[ \t*_]*\[(?P<argument>[^\]\n]*)", re.IGNORECASE),
    re.compile(
        rf"^[ \t>*#_-]*action[ \t]*\d*[ \t*_]*:[ \t*_]*{_NAMES}\b(?![ \t*_]*\[)[ \t*_]*:?"
        r"(?P<argument>[^\n]*)",
        re.IGNORECASE | re.MULTILINE,
    ),
)
_LABELS = re.compile(
    r"^[ \t>*#_-]*(?:thought|action)[ \t]*\d*[ \t*_]*:[ \t*_]*", re.IGNORECASE | re.MULTILINE
)


@dataclass(frozen=True, slots=True)
class Action:
    """What a model wants to do, and why."""

    verb: Verb
    argument: str
    thought: str = ""

    def __str__(self) -> str:
        thought = f"Thought: {self.thought}\n" if self.thought else ""
        return f"{thought}Action: {self.verb}[{self.argument}]"


@dataclass(frozen=True, slots=True)
class Step:
    """An action and what it brought: evidence for a search, a sentence for a look-up."""

    action: Action
    evidence: Evidence = Evidence()
    sentence: str = ""


@runtime_checkable
class Actor(Protocol):
    """Chooses the next action of each question after its steps so far, in order."""

    async def act(
        self, items: Sequence[tuple[Question, Sequence[Step]]]
    ) -> list[Reply[Action]]: ...


@dataclass(frozen=True, slots=True)
class PromptedActor:
    """Asks a language model; the steps so far are the turns of a conversation with it."""

    completer: Completer
    budget: Budget = Budget(max_words_per_chunk=100)
    max_tokens: int = 128
    system: str = SYSTEM
    shots: tuple[tuple[str, str], ...] = SHOTS

    async def act(self, items: Sequence[tuple[Question, Sequence[Step]]]) -> list[Reply[Action]]:
        """One call a question, all at once; an answer without an action is asked again once."""
        requests = []
        for question, steps in items:
            turns = [f"Question: {question.text}", *map(self._observation, steps)]
            done = [(turn, str(step.action)) for turn, step in zip(turns, steps)]
            requests.append(
                CompletionRequest(
                    messages=conversation(self.system, (*self.shots, *done), turns[-1]),
                    max_tokens=self.max_tokens,
                    stage="act",
                    question_id=question.id,
                )
            )
        return await ask(self.completer, requests, lambda _, completion: read_action(completion))

    def _observation(self, step: Step) -> str:
        shown = step.sentence or render_evidence(step.evidence, self.budget)
        return f"Observation:\n{shown or 'Nothing was found.'}"


def read_action(completion: Completion) -> Action:
    """The first action of an answer, and as its thought what stands before it.

    What follows is left out: a model may go on and invent what the action would bring.

    Raises:
        Unreadable: no action, or one without an argument.
    """
    text = clean(without_thinking(completion.text or ""))
    forms = [match for form in _FORMS if (match := form.search(text))]
    if not forms:
        raise Unreadable("no search[...], lookup[...] or finish[...]")
    found = min(forms, key=re.Match.start)
    verb = _VERBS[re.sub("[ -]", "", found["verb"]).lower()]
    said = found["argument"].strip()
    if said.startswith("(") and said.endswith(")"):
        said = said[1:-1]
    if not (argument := first_line(said)):
        raise Unreadable(f"{verb}[] is empty")
    return Action(verb, argument, " ".join(_LABELS.sub("", text[: found.start()]).split()))


def look_up(word: str, steps: Sequence[Step]) -> str:
    """The next sentence of the last search's passages that holds a word, numbered; "" for none.

    The same word again, with no search between, leads to the sentence after that.
    """
    evidence, num_before = Evidence(), 0
    for step in reversed(steps):
        if step.action.verb == "search":
            evidence = step.evidence
            break
        num_before += normalise(step.action.argument) == normalise(word)
    texts = [found.chunk.text for found in evidence.chunks]
    sentences = [one for text in texts for one in split_sentences(text)]
    holding = [one for one in sentences if normalise(word) in normalise(one)]
    if num_before >= len(holding):
        return ""
    return f"({num_before + 1} of {len(holding)}) {holding[num_before]}"
