"""Query triplets: triplets whose unknown parts are typed placeholders (T2RAG, section 3.2)."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from triax.records.triplets import Triplet

Kind = Literal["resolved", "searchable", "fuzzy"]

# A whole field "?" or "?name"; inside a longer field only "?name" as a word of its own. So the
# mark that ends "What's Up, Doc?" is part of the name (R25).
_WHOLE = re.compile(r"\?\s?(\w*)")
_INSIDE = re.compile(r"(?<!\S)\?(\w+)(?![\w?])")


@dataclass(frozen=True, slots=True)
class Placeholder:
    """An unknown: `?` (anonymous, name "") or `?name`, equal wherever the same name stands."""

    name: str = ""

    def __str__(self) -> str:
        return f"?{self.name}"


@dataclass(frozen=True, slots=True)
class Term:
    """One field of a query triplet: text, a placeholder, or text around placeholders."""

    parts: tuple[str | Placeholder, ...]

    @classmethod
    def parse(cls, text: str) -> "Term":
        """Reads `?`, `?name`, `the director of ?film` or plain text."""
        text = text.strip()
        if whole := _WHOLE.fullmatch(text):
            return cls((Placeholder(whole[1]),))
        parts: list[str | Placeholder] = []
        end = 0
        for match in _INSIDE.finditer(text):
            if literal := text[end : match.start()].strip():
                parts.append(literal)
            parts.append(Placeholder(match[1]))
            end = match.end()
        if rest := text[end:].strip():
            parts.append(rest)
        return cls(tuple(parts))

    @classmethod
    def literal(cls, text: str) -> "Term":
        """Text that is no placeholder whatever it looks like."""
        return cls((text.strip(),))

    @property
    def placeholders(self) -> tuple[Placeholder, ...]:
        """The unknowns of this field, in order."""
        return tuple(part for part in self.parts if isinstance(part, Placeholder))

    @property
    def known(self) -> str:
        """The text without the placeholders; "" for a placeholder alone."""
        return " ".join(part for part in self.parts if isinstance(part, str))

    def fill(self, bindings: Mapping[str, str]) -> "Term":
        """Puts values where named placeholders stand; an anonymous `?` binds under the name ""."""
        parts = tuple(
            bindings[part.name] if isinstance(part, Placeholder) and part.name in bindings else part
            for part in self.parts
        )
        if all(isinstance(part, str) for part in parts):
            return Term((" ".join(str(part) for part in parts),))
        return Term(parts)

    def __str__(self) -> str:
        return " ".join(str(part) for part in self.parts)


@dataclass(frozen=True, slots=True)
class QueryTriplet:
    """A triplet to be found; its kind is the number of its unknown parts (0, 1, 2 or more).

    `confidence` is what a solver gives with an answer: the probability that what it filled in is
    right. It is no part of what the triplet says, so equal triplets may differ in it.
    """

    subject: Term
    predicate: Term
    object: Term
    confidence: float | None = field(default=None, compare=False)

    @classmethod
    def parse(cls, subject: str, predicate: str, object: str) -> "QueryTriplet":
        """Reads three texts, in which `?` and `?name` are placeholders."""
        return cls(Term.parse(subject), Term.parse(predicate), Term.parse(object))

    @property
    def terms(self) -> tuple[Term, Term, Term]:
        """Subject, predicate, object."""
        return (self.subject, self.predicate, self.object)

    @property
    def placeholders(self) -> tuple[Placeholder, ...]:
        """All unknowns in reading order; a name that stands twice is there twice."""
        return tuple(found for term in self.terms for found in term.placeholders)

    @property
    def kind(self) -> Kind:
        """How many different things are unknown: none, one, or more (T2RAG, section 3.2)."""
        named = {found.name for found in self.placeholders if found.name}
        anonymous = sum(not found.name for found in self.placeholders)
        unknown = len(named) + anonymous
        return ("resolved", "searchable", "fuzzy")[min(unknown, 2)]

    @property
    def query(self) -> str:
        """The known parts as one text, which is what an index is asked."""
        return " ".join(term.known for term in self.terms if term.known)

    def fill(self, bindings: Mapping[str, str]) -> "QueryTriplet":
        """Puts known values where named placeholders stand."""
        terms = (term.fill(bindings) for term in self.terms)
        return QueryTriplet(*terms, confidence=self.confidence)

    def as_triplet(self, confidence: float | None = None) -> Triplet:
        """The triplet, once nothing is unknown.

        Raises:
            ValueError: a placeholder is left.
        """
        if self.placeholders:
            raise ValueError(f"{self} still has {len(self.placeholders)} placeholders; fill them")
        return Triplet(*(term.known for term in self.terms), confidence=confidence)

    def __str__(self) -> str:
        return " | ".join(str(term) for term in self.terms)
