"""The next sentence of a chain of thought, and what to search for after it.

Source: IRCoT (Trivedi et al., 2023, section 3). After each search a model is shown all that was
found and all that it has thought so far, and adds one sentence, which is the next query.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from triax.extraction.sentences import split_sentences
from triax.llm.ask import Reply, Unreadable, ask, conversation
from triax.reasoning.answer_text import first_line, is_abstention, without_thinking
from triax.reasoning.context import Budget, render_evidence
from triax.reasoning.synthesize import Short
from triax.records.completions import Completion, CompletionRequest
from triax.records.evidence import Evidence
from triax.records.questions import Question
from triax.records.text import clean, normalise
from triax.records.verbs import Completer

SYSTEM = (
    "You find the answer to a question in small steps, with passages at hand. Write the next "
    "sentence of your thoughts and no more: one fact that leads from what is known to the answer, "
    "with the full names of what it is about. When your thoughts suffice, write 'So the answer "
    "is:' instead, followed by a name, a date, a number, yes or no."
)
_NOVEL = "[1] The Leopard\nThe Leopard is a novel by Giuseppe Tomasi di Lampedusa."
_WRITER = "[2] Giuseppe Tomasi di Lampedusa\nThe writer was born in Palermo and died in Rome."
_WHERE = "Question: In which city was the author of The Leopard born?"
SHOTS: tuple[tuple[str, str], ...] = (
    (
        f"Passages:\n{_NOVEL}\n\n{_WHERE}\n\nNext sentence:",
        "The Leopard was written by Giuseppe Tomasi di Lampedusa.",
    ),
    (
        f"Passages:\n{_NOVEL}\n{_WRITER}\n\n{_WHERE}\n\nThoughts so far:\n"
        "The Leopard was written by Giuseppe Tomasi di Lampedusa.\n\nNext sentence:",
        "Giuseppe Tomasi di Lampedusa was born in Palermo.",
    ),
    (
        f"Passages:\n{_NOVEL}\n{_WRITER}\n\n{_WHERE}\n\nThoughts so far:\n"
        "The Leopard was written by Giuseppe Tomasi di Lampedusa.\n"
        "Giuseppe Tomasi di Lampedusa was born in Palermo.\n\nNext sentence:",
        "So the answer is: Palermo.",
    ),
)

_LABEL = re.compile(
    r"^[ \t]*(?:[-*>#]+[ \t]+)?(?:\d{1,2}[.)][ \t]+)?"
    r"(?:[*_]*(?:next[ \t]+)?(?:sentence|thought|step)[ \t]*\d*[*_]*:[*_]*)?[ \t]*",
    re.IGNORECASE | re.MULTILINE,
)
_MARKED = re.compile(r"(?<!\w)(\*{1,3})(?=\S)([^*\n]*[^*\s])\1(?!\w)")
_BREAK = re.compile(r":[ \t*_]*\n\s*")
_CONCLUDES = re.compile(
    r"(?<!intermediate )\banswer(?:\s+is\b[ \t]*:?|[ \t]*:)[ \t*_]*", re.IGNORECASE
)
_FULL_STOP = re.compile(r"(?<![.\s]\w)\.\Z")  # not that of "D.C." or of an initial
_INFERS = re.compile(r"(?:thus|so|therefore|hence|that is)\b", re.IGNORECASE)
_COMPUTES = re.compile(r"\d\s?[-+*/\u2212\u00d7]\s?\d[\d.,]*\s?=")


@dataclass(frozen=True, slots=True)
class Thought:
    """One sentence of a chain of thought; `text` is "" where nothing new was said.

    `query` is what to search for next, "" where the thought gives nothing to search for. `answer`
    is the answer as far as the thought gives one; `is_last` says that it ends the chain.
    """

    text: str
    query: str = ""
    answer: Short | None = None
    is_last: bool = False


@dataclass(frozen=True, slots=True)
class Thread:
    """One question in one round: all that was found and thought so far."""

    question: Question
    evidence: Evidence
    thoughts: tuple[Thought, ...] = ()

    @property
    def texts(self) -> list[str]:
        """What was thought so far, sentence by sentence."""
        return [thought.text for thought in self.thoughts if thought.text]


@runtime_checkable
class Thinker(Protocol):
    """Thinks one step further in each thread, in order."""

    async def think(self, threads: Sequence[Thread]) -> list[Reply[Thought]]: ...


@dataclass(frozen=True, slots=True)
class PromptedThinker:
    """Asks a language model, and keeps the first sentence of its answer.

    A chat model does not continue a text but answers, and may tell its thoughts from the start;
    so the first sentence is kept that is not among the thoughts yet.
    """

    completer: Completer
    budget: Budget = Budget(max_words_per_chunk=350)
    max_tokens: int = 300
    system: str = SYSTEM
    shots: tuple[tuple[str, str], ...] = SHOTS

    async def think(self, threads: Sequence[Thread]) -> list[Reply[Thought]]:
        """One call a thread, all at once."""
        requests = [
            CompletionRequest(
                messages=conversation(self.system, self.shots, self._prompt(thread)),
                max_tokens=self.max_tokens,
                stage="think",
                question_id=thread.question.id,
            )
            for thread in threads
        ]
        return await ask(self.completer, requests, lambda i, one: read_thought(threads[i], one))

    def _prompt(self, thread: Thread) -> str:
        blocks = [render_evidence(thread.evidence, self.budget)]
        blocks.append(f"Question: {thread.question.text}")
        if thread.texts:
            said = (text if text[-1] in ".!?" else f"{text}." for text in thread.texts)
            blocks.append("\n".join(["Thoughts so far:", *said]))
        return "\n\n".join([*filter(None, blocks), "Next sentence:"])


def read_thought(thread: Thread, completion: Completion) -> Thought:
    """The first sentence of an answer that the thread does not have yet, without its full stop.

    Raises:
        Unreadable: nothing but thinking, which was cut.
    """
    said = without_thinking(completion.text or "")
    if not said.strip() and (completion.text or "").strip():
        raise Unreadable("there is nothing behind the thinking; expected one sentence")
    known = {normalise(text) for text in thread.texts}
    said = _MARKED.sub(r"\2", with_answers_joined(clean(said)))
    said = _LABEL.sub("", said)
    for sentence in map(first_line, split_sentences(said)):
        if sentence and normalise(sentence) not in known:
            answer = read_conclusion(sentence)
            infers = answer is not None or _INFERS.match(sentence) or _COMPUTES.search(sentence)
            return Thought(sentence, "" if infers else sentence, answer, answer is not None)
    return Thought("")


def with_answers_joined(text: str) -> str:
    """The text with what stands on a line of its own behind a colon put behind that colon."""
    return _BREAK.sub(": ", text)


def read_conclusion(text: str) -> Short | None:
    """What follows the last `answer is` or `answer:` of a text; None where nothing does."""
    marked = list(_CONCLUDES.finditer(text))
    if not marked:
        return None
    answer = first_line(_FULL_STOP.sub("", text[marked[-1].end() :].strip()))
    answer = _FULL_STOP.sub("", answer)
    return Short(None if is_abstention(answer) else answer) if answer else None


def next_query(question: Question, thoughts: Sequence[Thought]) -> str:
    """What to search for: the last thought that states a fact, or the question before there is one.

    A sentence that concludes or computes names nothing new (IRCoT's released code).
    """
    queries = (thought.query for thought in reversed(thoughts) if thought.query)
    return next(queries, question.searched)
