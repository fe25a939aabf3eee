"""Rewriting: an uncertain question gets the chain of triplets that would answer it.

Source: R2Adapter, section 3.3: lines `[head, relation, tail]` with `?` for what is asked and
`<description>` for what must be found on the way, behind the question itself, so that a failed
rewriting leaves the question as it was. Their notation is that of query triplets: `<...>` and `?`
are placeholders.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from triax.records.query_triplets import Placeholder, QueryTriplet, Term
from triax.records.questions import Question
from triax.records.usage import Usage

LEAD = "structured triplet reasoning chain:"


@runtime_checkable
class Decomposes(Protocol):
    """What a decomposer does: replies with `value` (query triplets, or None) and `usage`."""

    async def decompose(self, questions: Sequence[Question]) -> Sequence[Any]: ...


@dataclass(frozen=True, slots=True)
class ChainRewriter:
    """Appends the query triplets of any decomposer, prompted or trained, to the question."""

    decomposer: Decomposes

    async def rewrite(self, questions: Sequence[Question]) -> list[tuple[str, Usage]]:
        """The text to search with, "" where no triplet was found, and what it cost."""
        replies = await self.decomposer.decompose(questions)
        return [
            (chain_text(question.text, reply.value) if reply.value else "", reply.usage)
            for question, reply in zip(questions, replies, strict=True)
        ]


def chain_text(question: str, triplets: Sequence[QueryTriplet]) -> str:
    """The question with its chain behind it.

    What is used once only is asked, `?`; what leads from one triplet to another is described by
    the triplet that brings it in.

    >>> chain = [("Brand", "author", "?a"), ("?a", "born in", "?b")]
    >>> triplets = [QueryTriplet.parse(*fields) for fields in chain]
    >>> print(chain_text("Where was the author of Brand born?", triplets))
    Where was the author of Brand born?
    structured triplet reasoning chain:
    [Brand, author, <author of Brand>]
    [<author of Brand>, born in, ?]
    """
    uses = Counter(one.name for triplet in triplets for one in triplet.placeholders)
    shown = {name: "?" for name, count in uses.items() if count == 1}
    for triplet in triplets:
        for placeholder in triplet.placeholders:
            if placeholder.name not in shown:
                shown[placeholder.name] = f"<{_description(triplet, placeholder.name, shown)}>"
    lines = [
        "[" + ", ".join(_text(term, shown) for term in triplet.terms) + "]" for triplet in triplets
    ]
    return "\n".join([question, LEAD, *lines])


def _description(triplet: QueryTriplet, name: str, shown: Mapping[str, str]) -> str:
    """`author of Brand` for ?a in (Brand, author, ?a), `wrote Brand` for (?a, wrote, Brand)."""
    subject, predicate, object = (
        re.sub(r"[<>]", "", _text(term, {name: "", **shown})) for term in triplet.terms
    )
    is_object = any(one.name == name for one in triplet.object.placeholders)
    words = (predicate, "of", subject) if is_object else (subject, predicate, object)
    return " ".join(word for word in words if word)


def _text(term: Term, shown: Mapping[str, str]) -> str:
    parts = (
        shown[part.name] if isinstance(part, Placeholder) else part.strip() for part in term.parts
    )
    return " ".join(part for part in parts if part)
