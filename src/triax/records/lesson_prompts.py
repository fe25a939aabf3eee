"""The short prompts of a trained decoder: lessons are written with them, and runs ask with them.

A trained model needs neither explanation nor example, so the system text is one word that names
the task. The user's turn is what the parts of `reasoning` and `extraction` write in the
configurations named `written`; a test holds the two together, word for word.
"""

from collections.abc import Sequence
from typing import Literal

from triax.records.completions import Message
from triax.records.query_triplets import Placeholder, QueryTriplet, Term

Assignment = Literal["decompose", "resolve", "answer", "extract"]
ASSIGNMENTS: tuple[Assignment, ...] = ("decompose", "resolve", "answer", "extract")
SYSTEMS: dict[Assignment, str] = {
    "decompose": "Decompose.",
    "resolve": "Fill.",
    "answer": "Answer.",
    "extract": "Extract.",
}
# What a model writes where the evidence does not say it, as in `reasoning.resolve`.
NOT_FOUND = "not found"


def lesson_messages(assignment: Assignment, user: str) -> tuple[Message, ...]:
    """The conversation up to where the model is to write."""
    return (Message("system", SYSTEMS[assignment]), Message("user", user))


def decompose_prompt(question: str) -> str:
    """The user's turn that asks for query triplets."""
    return f"Question: {question}"


def resolve_prompt(
    query: QueryTriplet, passages: Sequence[str] = (), facts: Sequence[str] = ()
) -> str:
    """The user's turn that asks for the missing value of a searchable query triplet.

    Args:
        query: its placeholders are shown as a bare `?`.
        passages: each with its title on the first line; cut them with `cut_words`.
        facts: propositions.
    """
    return f"{_evidence(passages, facts)}\n\n{_with_gap(query)}"


def answer_prompt(question: str, facts: Sequence[str] = ()) -> str:
    """The user's turn that asks for an answer from triplets, written `s | p | o`."""
    shown = "\n".join(facts)
    return f"Facts:\n{shown}\n\nQuestion: {question}" if facts else f"Question: {question}"


def read_prompt(question: str, passages: Sequence[str]) -> str:
    """The user's turn that asks for an answer from passages."""
    return (
        f"{_evidence(passages, ())}\n\nQuestion: {question}"
        if passages
        else answer_prompt(question)
    )


def extract_prompt(passage: str) -> str:
    """The user's turn that asks for the triplets of a passage; cut it with `first_words`."""
    return f"Passage: {passage}"


def cut_words(text: str, max_words: int) -> str:
    """The first words of a text, with an ellipsis where something was left out.

    >>> cut_words("a b  c", 2), cut_words("a b  c", 3)
    ('a b …', 'a b  c')
    """
    words = text.split()
    return text if len(words) <= max_words else " ".join(words[:max_words]) + " …"


def first_words(text: str, max_words: int) -> str:
    """The first words of a text, as an extractor with `max_words` reads it: without a mark."""
    words = text.split()
    return text if len(words) <= max_words else " ".join(words[:max_words])


def _evidence(passages: Sequence[str], facts: Sequence[str]) -> str:
    blocks = []
    if passages:
        shown = "\n".join(f"[{number}] {text}" for number, text in enumerate(passages, 1))
        blocks.append(f"Passages:\n{shown}")
    if facts:
        blocks.append("Facts:\n" + "\n".join(f"- {fact}" for fact in facts))
    return "\n\n".join(blocks)


def _with_gap(query: QueryTriplet) -> str:
    terms = (
        Term(tuple(part if isinstance(part, str) else Placeholder() for part in term.parts))
        for term in query.terms
    )
    return " | ".join(map(str, terms))
