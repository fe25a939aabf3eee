"""Unification: what a filled triplet says about the placeholders of the open ones.

A language model answers in words; which placeholder it filled, and where else that placeholder
stands, is decided here.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from triax.records.query_triplets import Placeholder, QueryTriplet, Term
from triax.records.text import normalise


@dataclass(frozen=True, slots=True)
class Match:
    """An open query triplet that an answer fits, and the values it gives to named placeholders.

    `filled` is the query with the answer's values in place, anonymous placeholders included.
    """

    query: QueryTriplet
    bindings: Mapping[str, str]
    filled: QueryTriplet


def unify(query: QueryTriplet, answer: QueryTriplet) -> Match | None:
    """Fits an answer to a query: known fields agree, placeholders take the answer's text.

    Subject and object must agree up to case and width where both are known; so must the
    predicate. A placeholder of the answer leaves the query's placeholder open. None if a field
    contradicts, or if one name would get two values.
    """
    bindings: dict[str, str] = {}
    terms: list[Term] = []
    for mine, theirs in zip(query.terms, answer.terms, strict=True):
        if not mine.placeholders:
            if theirs.placeholders or not _same(mine.known, theirs.known):
                return None
            terms.append(mine)
        elif theirs.placeholders:
            terms.append(mine)
        else:
            value = _value(mine, theirs.known)
            if value is None:
                return None
            for placeholder in mine.placeholders:
                if not placeholder.name:
                    continue
                if not _same(bindings.setdefault(placeholder.name, value), value):
                    return None
            terms.append(Term.literal(theirs.known))
    filled = QueryTriplet(*terms).fill(bindings)
    return Match(query, bindings, filled) if filled != query else None


def match(answer: QueryTriplet, open_queries: Sequence[QueryTriplet]) -> list[Match]:
    """All open queries that the answer fits, those with the same predicate wording first.

    A model often words the predicate anew; when no query agrees on all known fields, those that
    agree on subject and object are taken.
    """
    exact = [found for query in open_queries if (found := unify(query, answer))]
    if exact:
        return exact
    loose = []
    for query in open_queries:
        if query.predicate.placeholders or answer.predicate.placeholders:
            continue
        reworded = QueryTriplet(answer.subject, query.predicate, answer.object)
        anchored = any(not term.placeholders for term in (query.subject, query.object))
        if anchored and (found := unify(query, reworded)):
            loose.append(found)
    return loose


def fill_all(queries: Iterable[QueryTriplet], bindings: Mapping[str, str]) -> list[QueryTriplet]:
    """Puts the values wherever their placeholders stand; anonymous ones are never shared."""
    named = {name: value for name, value in bindings.items() if name}
    return [query.fill(named) for query in queries]


def _same(left: str, right: str) -> bool:
    return normalise(left) == normalise(right)


def _value(term: Term, text: str) -> str | None:
    """The text that stands for the one placeholder of `the director of ?film`; None if no fit."""
    if len(term.placeholders) != 1:
        return None
    if len(term.parts) == 1:
        return text
    position = next(i for i, part in enumerate(term.parts) if isinstance(part, Placeholder))
    before = " ".join(str(part) for part in term.parts[:position])
    after = " ".join(str(part) for part in term.parts[position + 1 :])
    folded = text.casefold()
    if folded.startswith(before.casefold()) and folded.endswith(after.casefold()):
        return text[len(before) : len(text) - len(after)].strip() or None
    return text
