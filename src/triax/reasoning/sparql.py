"""SPARQL chain of thought: a query, the values of its variables, the answer, in one call.

Source: "The Reasoning Bottleneck in Graph-RAG" (Zarinkia, Srinivasan, Thomo, 2026, section 3.2), in
our own words. No query is run: it is a plan, which the model follows through the context.
"""

import re

from triax.reasoning.answer_text import is_abstention, without_thinking
from triax.reasoning.context import Budget
from triax.reasoning.final_answer import LAST, ThinkingReader
from triax.records.query_triplets import QueryTriplet
from triax.records.sparql_text import SparqlThoughts, find_query, triple_patterns
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
# `?city = Palermo`, wherever in its line it stands; `?x :born_in` is none.
_BINDING = re.compile(r"([?$]\w+)[*`\"')]{0,3}[ \t]*(?:=|->|→|:(?=[ \t]))")


def sparql_reader(
    completer: Completer,
    budget: Budget = Budget(),
    max_tokens: int = 512,
    temperature: float = 0.0,
) -> ThinkingReader:
    """Reads with a SPARQL chain of thought; arguments as for `ThinkingReader`."""
    return ThinkingReader(completer, SYSTEM, SHOTS, "sparql", budget, max_tokens, temperature)


def read_thoughts(text: str) -> SparqlThoughts:
    """Reads what was written, as far as it can be read; never raises."""
    text = clean(without_thinking(text))
    start, end = find_query(text)
    query = text[start:end].strip()
    patterns = (QueryTriplet.parse(*map(_plain, terms)) for terms in triple_patterns(query))
    return SparqlThoughts(query, tuple(patterns), _bindings(text[end:]))


def _bindings(text: str) -> dict[str, str]:
    """The first value that each variable gets; another variable, or not knowing, is none."""
    bindings: dict[str, str] = {}
    for line in text.splitlines():
        found = list(_BINDING.finditer(line))
        ends = [*(one.start() for one in found[1:]), len(line)]
        for one, end in zip(found, ends):
            value = line[one.end() : end].strip(' \t*`.,;"')
            if value and value[0] not in "?$" and not is_abstention(value):
                bindings.setdefault(f"?{one[1][1:]}", value)
    return bindings


def _plain(term: str) -> str:
    """A term without what SPARQL wraps around it: quotes, angle brackets, prefixes, underscores."""
    if term[0] in "?$":
        return f"?{term[1:]}"
    if term[0] in "\"'<":
        inner = term[1 : max(term.rfind(term[0]), term.rfind(">"))]
        return inner.strip() or term
    return re.sub(r"^\w*:", "", term).replace("_", " ").strip() or term
