"""SPARQL as language models write it: where a query stands in a text, its terms, its patterns.

Plain words may stand where the grammar wants IRIs, and any part may be missing. Nothing here
raises; whether a query is SPARQL, `scoring.sparql` tells.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from triax.records.query_triplets import QueryTriplet

_HEAD = (
    r"\b(?:{select}(?:\s{{1,9}}{distinct}\b)?\s{{0,9}}(?:[?$]\w|\(\s{{0,9}}(?:\w{{1,20}}\(|[?$])"
    r"|[^{{}}?$]{{0,60}}?\b{where}\s{{0,9}}\{{|\*?\s{{0,9}}\{{)"
    r"|{ask}\s{{0,9}}(?:{where}\s{{0,9}})?\{{)"
)
_NAMES = {"select": "SELECT", "distinct": "(?:DISTINCT|REDUCED)", "where": "WHERE", "ask": "ASK"}
# In capitals first: "we select ?city by: SELECT ?city ..." has its query behind the colon.
_STARTS = (re.compile(_HEAD.format(**_NAMES)), re.compile(_HEAD.format(**_NAMES), re.IGNORECASE))
# What no query goes beyond, and what one whose braces do not close does not either.
_STOP = re.compile(
    r"```|^[^\w\n]{0,12}(?:step\s*[23]\b|final\s+answer)", re.IGNORECASE | re.MULTILINE
)
_GAP = re.compile(r"\n[ \t]*\n|^[^\n?$\"{}]{0,12}[?$]\w+[ \t]*(?:=|->|→)", re.MULTILINE)
_MODIFIERS = re.compile(
    r"(?:\s*\b(?:order|group|limit|offset|having)\b(?:(?!\bstep\b)[^\n`])*)+", re.IGNORECASE
)
# Of a length that ends: a quote that never closes is looked for once a character.
_STRING = r'"(?:[^"\\\n]|\\.){0,300}"|(?<!\w)' r"'(?:[^'\\\n]|\\.){0,300}'"
_TOKEN = re.compile(
    rf"(?:{_STRING})(?:@[\w-]+|\^\^[\w:]+)?"
    r"|<[^<>{}\n]{0,300}>|[?$]\w+|\#[^\n]*|[.;,{}()]"
    r"|[^\s\"'<>?$.;,{}()\#](?:[^\s\"<>?$.;,{}()]|\.(?=\w))*|\S"
)
# In capitals they open a statement of their own, with or without a full stop before.
_KEYWORDS = frozenset(
    "ASK BIND FILTER GRAPH MINUS OPTIONAL SELECT SERVICE UNION VALUES WHERE".split()
)
# How many terms the statement before lends to one behind this mark.
_MISSING = {";": 1, ",": 2}


@dataclass(frozen=True, slots=True)
class Statement:
    """The terms between two marks, as they are written.

    after: the mark before them, one of `{ } . ; ,`; after `;` the subject is missing, after `,`
        the predicate too.
    start, end: where they stand in the query, in characters.
    """

    terms: tuple[str, ...]
    after: str
    start: int
    end: int

    @property
    def is_pattern(self) -> bool:
        """Whether it can be (the rest of) a triple pattern: no keyword, no brackets."""
        return _is_complete(self.terms[0], len(self.terms), self.after) and not (
            {"(", ")"} & set(self.terms)
        )


@dataclass(frozen=True, slots=True)
class SparqlThoughts:
    """A query as it was written ("" for none), its patterns, and the values of its variables."""

    query: str
    patterns: tuple[QueryTriplet, ...] = ()
    bindings: Mapping[str, str] = field(default_factory=dict)

    @property
    def bound(self) -> float:
        """The share of the patterns' variables that have a value; 0 where there are none."""
        names = {str(one) for pattern in self.patterns for one in pattern.placeholders}
        return len(names & set(self.bindings)) / len(names) if names else 0.0


def find_query(text: str) -> tuple[int, int]:
    """Where the first query starts and ends, in characters; (0, 0) where there is none.

    It ends with the brace that closes its first one and the modifiers behind; where none does, at
    the next step, at an empty line or at the first value of a variable.
    """
    found = next(filter(None, (start.search(text) for start in _STARTS)), None)
    if found is None:
        return 0, 0
    stop = _STOP.search(text, found.end())
    limit = stop.start() if stop else len(text)
    depth = 0
    for token in _TOKEN.finditer(text, found.start(), limit):
        depth += (token[0] == "{") - (token[0] == "}")
        if token[0] == "}" and depth <= 0:
            behind = _MODIFIERS.match(text, token.end(), limit)
            return found.start(), behind.end() if behind else token.end()
    gap = _GAP.search(text, found.end(), limit)
    return found.start(), gap.start() if gap else limit


def statements(query: str, lines_end: bool = False) -> Iterator[Statement]:
    """What stands between the first brace of a query and the one that closes it.

    lines_end: whether the end of a line ends a pattern that has all its terms, as if the full
        stop were there. The grammar knows no such thing.
    """
    held: list[re.Match[str]] = []
    after, braces, brackets = "", 0, 0
    for token in _TOKEN.finditer(query):
        mark = token[0]
        if mark[0] == "#" or (not braces and mark != "{"):
            continue
        is_break = mark in "{}" or (mark in ".;," and brackets == 0)
        is_ended = lines_end and brackets == 0 and held and _is_line_end(held, after, token)
        if held and (is_break or mark in _KEYWORDS or is_ended):
            yield _statement(held, after)
            held, after = [], "."
        if is_break:
            braces += (mark == "{") - (mark == "}")
            after, brackets = mark, 0
            if not braces:
                return
            continue
        held.append(token)
        brackets = max(0, brackets + (mark == "(") - (mark == ")"))
        if mark == ")" and brackets == 0:
            yield _statement(held, after)
            held, after = [], "."
    if held:
        yield _statement(held, after)


def triple_patterns(query: str) -> list[tuple[str, str, str]]:
    """The triple patterns of a query, with what `;` and `,` leave out.

    A pattern's first term is its subject, its last its object, and what stands between them its
    predicate, so that plain English predicates are read too.

    >>> triple_patterns('SELECT ?c { "The Leopard" written by ?a . ?a born_in ?c ; is "x" }')
    [('"The Leopard"', 'written by', '?a'), ('?a', 'born_in', '?c'), ('?a', 'is', '"x"')]
    """
    found: list[tuple[str, str, str]] = []
    known: tuple[str, ...] = ()  # subject and predicate of the statement before
    for one in statements(query, lines_end=True):
        terms = (*known[: _MISSING.get(one.after, 0)], *one.terms)
        if not one.is_pattern or len(terms) < 3:
            known = ()
            continue
        known = (terms[0], " ".join(terms[1:-1]))
        found.append((*known, terms[-1]))
    return found


def _is_complete(first: str, num_terms: int, after: str) -> bool:
    return num_terms + _MISSING.get(after, 0) >= 3 and first.upper() not in _KEYWORDS


def _is_line_end(held: list[re.Match[str]], after: str, token: re.Match[str]) -> bool:
    between = token.string[held[-1].end() : token.start()]
    return "\n" in between and _is_complete(held[0][0], len(held), after)


def _statement(held: list[re.Match[str]], after: str) -> Statement:
    return Statement(tuple(one[0] for one in held), after, held[0].start(), held[-1].end())
