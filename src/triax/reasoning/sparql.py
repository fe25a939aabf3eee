"""SPARQL chain of thought: a query, the values of its variables, the answer, in one call.

Source: "The Reasoning Bottleneck in Graph-RAG" (Zarinkia, Srinivasan, Thomo, 2026, section 3.2), in
our own words. No query is run: it is a plan, which the model follows through the context.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from triax.reasoning.context import Budget
from triax.reasoning.final_answer import LAST, ThinkingReader
from triax.records.query_triplets import QueryTriplet
from triax.records.text import clean
from triax.records.verbs import Completer

SYSTEM = (
    "Answer the question from the context in three steps.\n"
    "Step 1: Write a small SPARQL query for the question: at most 4 triple patterns, names and "
    "values in double quotes, predicates as plain words joined by underscores, no URIs, no FILTER, "
    "no subqueries.\n"
    "Step 2: Go through the patterns one by one and find in the context the value of each "
    "variable. Write one line for each: ?variable = value\n"
    f"Step 3: {LAST[0].upper()}{LAST[1:]}"
)
SHOTS = (
    (
        "Context:\nPassages:\n[1] The Leopard\nThe Leopard is a novel by Giuseppe Tomasi di "
        "Lampedusa.\n[2] Giuseppe Tomasi di Lampedusa\nThe writer was born in Palermo.\n\n"
        "Question: In which city was the author of The Leopard born?",
        'Step 1:\nSELECT ?city WHERE {\n  "The Leopard" written_by ?author .\n'
        "  ?author born_in ?city .\n}\n"
        "Step 2:\n?author = Giuseppe Tomasi di Lampedusa\n?city = Palermo\n"
        "Step 3:\nFINAL ANSWER: Palermo",
    ),
)
_WHERE = re.compile(r"(?is)\bselect\b[^{}]{0,500}\{([^{}]*)\}|\bask\b[^{}]{0,100}\{([^{}]*)\}")
_TERM = re.compile(r'"[^"\n]*"|\'[^\'\n]*\'|<[^<>\n]*>|[?$]\w+|[^\s"\'<>?$;,.]+(?:\.\w+)*|\.')
_BINDING = re.compile(r"(?m)^\W{0,6}?([?$]\w+)\W{0,3}\s*(?:=|->|→|:)\s*(\S.*)$")


@dataclass(frozen=True, slots=True)
class SparqlThoughts:
    """What was written: the query as it stands ("" for none), its patterns, and the bindings."""

    query: str
    patterns: tuple[QueryTriplet, ...] = ()
    bindings: Mapping[str, str] = field(default_factory=dict)


def sparql_reader(
    completer: Completer,
    budget: Budget = Budget(),
    max_tokens: int = 512,
    temperature: float = 0.0,
) -> ThinkingReader:
    """Reads with a SPARQL chain of thought; arguments as for `ThinkingReader`."""
    return ThinkingReader(completer, SYSTEM, SHOTS, "sparql", budget, max_tokens, temperature)


def read_thoughts(text: str) -> SparqlThoughts:
    """Reads what was written, as far as it can be read; never raises.

    A pattern's first term is its subject, its last its object, and what stands between them its
    predicate, so that plain English predicates are read too.
    """
    text = clean(text)
    found = _WHERE.search(text)
    query = found[0] if found else ""
    body = next((part for part in found.groups() if part is not None), "") if found else ""
    bindings: dict[str, str] = {}
    for variable, value in _BINDING.findall(text[found.end() :] if found else text):
        bindings.setdefault(f"?{variable[1:]}", value.strip(" *`."))
    return SparqlThoughts(query, tuple(map(_query_triplet, pattern_terms(body))), bindings)


def pattern_terms(body: str) -> list[tuple[str, str, str]]:
    """The triple patterns between the braces of a query; one of fewer than three terms is none."""
    patterns = []
    for line in body.replace(";", " .\n").splitlines():
        terms: list[str] = []
        for term in [*_TERM.findall(line), "."]:
            if term != ".":
                terms.append(term)
                continue
            if len(terms) >= 3:
                patterns.append((terms[0], " ".join(terms[1:-1]), terms[-1]))
            terms = []
    return patterns


def _query_triplet(terms: tuple[str, str, str]) -> QueryTriplet:
    return QueryTriplet.parse(*map(_plain, terms))


def _plain(term: str) -> str:
    """A term without what SPARQL wraps around it: quotes, angle brackets, prefixes, underscores."""
    if term[0] in "?$":
        return f"?{term[1:]}"
    if term[0] in "\"'<":
        return term[1:-1].strip() or term
    return re.sub(r"^\w*:", "", term).replace("_", " ").strip() or term
