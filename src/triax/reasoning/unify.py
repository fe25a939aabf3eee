"""Unification: what a filled triplet says about the placeholders of the open ones.

A language model answers in words; which placeholder it filled, and where else that placeholder
stands, is decided here.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

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

    Fields must agree up to case and width where both are known. A placeholder of the answer
    leaves the query's placeholder open. A field such as `the director of ?film` binds ?film where
    the answer repeats the words around it; any other text answers the field as a whole and binds
    nothing. None if a field contradicts, if one name would get two values, or if nothing is filled.
    """
    bindings: dict[str, str] = {}
    terms: list[Term] = []
    for mine, theirs in zip(query.terms, answer.terms, strict=True):
        if not mine.placeholders:
            if theirs.placeholders or not _same(mine.known, theirs.known):
                return None
            terms.append(mine)
        elif theirs.placeholders or _bare(mine) == _bare(theirs):
            if theirs.placeholders and mine.known and theirs.known:
                if not _same(mine.known, theirs.known):
                    return None
            terms.append(mine)
        else:
            for name, value in _values(mine, theirs.known):
                if name and not _same(bindings.setdefault(name, value), value):
                    return None
            terms.append(Term.literal(theirs.known))
    filled = QueryTriplet(*terms).fill(bindings)
    return Match(query, bindings, filled) if filled != query else None


def match(answer: QueryTriplet, open_queries: Sequence[QueryTriplet]) -> list[Match]:
    """The open queries that the answer fits best, in their order.

    Best are those with the most known fields, since `A | father | B` answers `A | father | ?x`
    rather than `?x | father | ?y`. A model often words the predicate anew; when no query agrees on
    all known fields, those that agree on subject and object are taken, the most alike in the
    words of their predicate.
    """
    exact = [found for query in open_queries if (found := unify(query, answer))]
    if exact:
        return _best(exact, lambda found: _num_known(found.query))
    loose = []
    for query in open_queries:
        if query.predicate.placeholders or answer.predicate.placeholders:
            continue
        reworded = QueryTriplet(answer.subject, query.predicate, answer.object)
        anchored = any(not term.placeholders for term in (query.subject, query.object))
        if anchored and (found := unify(query, reworded)):
            loose.append(found)
    words = _words(answer.predicate)
    return _best(
        loose, lambda found: (_num_known(found.query), len(words & _words(found.query.predicate)))
    )


def shape(triplet: QueryTriplet) -> tuple[str, ...]:
    """What a triplet says without the names of its placeholders, normalised.

    Two triplets of one shape ask the same: a model may repeat `?author` as `?`.
    """
    return tuple(map(_bare, triplet.terms))


def fill_all(queries: Iterable[QueryTriplet], bindings: Mapping[str, str]) -> list[QueryTriplet]:
    """Puts the values wherever their placeholders stand; anonymous ones are never shared."""
    named = {name: value for name, value in bindings.items() if name}
    return [query.fill(named) for query in queries]


def _bare(term: Term) -> str:
    return normalise(
        " ".join("?" if isinstance(part, Placeholder) else part for part in term.parts)
    )


def _same(left: str, right: str) -> bool:
    return normalise(left) == normalise(right)


def _best(found: list[Match], rank: Callable[[Match], Any]) -> list[Match]:
    best = max(map(rank, found), default=None)
    return [one for one in found if rank(one) == best]


def _num_known(query: QueryTriplet) -> int:
    return sum(not term.placeholders for term in query.terms)


def _words(term: Term) -> set[str]:
    return set(normalise(term.known).split())


def _values(term: Term, text: str) -> list[tuple[str, str]]:
    """What each placeholder of a field stands for in a text; nothing where the text differs."""
    if len(term.parts) == 1:
        return [(found.name, text) for found in term.placeholders]
    pattern = r"\s*".join(
        "(.*?\\S.*?)" if isinstance(part, Placeholder) else re.escape(part) for part in term.parts
    )
    if not (fitting := re.fullmatch(pattern, text, re.IGNORECASE | re.DOTALL)):
        return []
    values = [value.strip() for value in fitting.groups()]
    return [(found.name, value) for found, value in zip(term.placeholders, values, strict=True)]
