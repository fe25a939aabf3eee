"""Whether written SPARQL is SPARQL, by rdflib's parser; plain words are wrapped as in the paper.

Source: "The Reasoning Bottleneck in Graph-RAG" (Zarinkia, Srinivasan, Thomo, 2026, table of parse
rates, as the authors' `revision/sparql_syntax_validity.py` counts them). The prompt asks for
predicates in plain words, which no grammar allows bare. Words are all that is mended: a full stop
or a brace that is missing stays missing, and a predicate of two words is one too many.
"""

import re
from collections.abc import Sequence

from triax.records.sparql_text import SparqlThoughts, statements
from triax.scoring.significance import mean_interval

_WORDS = frozenset(("a", "true", "false"))  # that the grammar knows among terms


def wrapped(query: str) -> str:
    """A query whose plain words are IRIs.

    >>> wrapped('SELECT ?c { "The Leopard" written_by ?a . ?a born_in ?c } LIMIT 1')
    'SELECT ?c { "The Leopard" <urn:written_by> ?a . ?a <urn:born_in> ?c } LIMIT 1'
    """
    pieces, end = [], 0
    for one in statements(query):
        if one.is_pattern:
            pieces += [query[end : one.start], " ".join(map(_iri, one.terms))]
            end = one.end
    return "".join([*pieces, query[end:]])


def parses(query: str) -> bool:
    """Whether rdflib takes the wrapped query.

    Its parser gives up on some 90 patterns in a row, where 4 are asked for.

    Raises:
        ImportError: rdflib is not installed; it is in the extra `systems`.
    """
    try:
        from rdflib.plugins.sparql.parser import parseQuery
    except ImportError as error:
        raise ImportError(
            "the check of SPARQL needs rdflib; install it with `pip install 'triax[systems]'`"
        ) from error
    if not query.strip():
        return False
    try:
        parseQuery(wrapped(query))
    except Exception:  # pyparsing's own errors, and what its actions raise
        return False
    return True


def sparql_figures(
    thoughts: Sequence[SparqlThoughts], abstained: Sequence[bool]
) -> dict[str, float | int]:
    """How well SPARQL was written for some questions, as shares with 95% intervals.

    `coverage/parsed` is over all questions, as the paper's rates are: no query is no parsed one.
    `coverage/parsed_queries`, `patterns` and `coverage/bound` (variables with a value) are over
    the queries that were written, and missing where there are none.
    """
    found: dict[str, float | int] = {"questions": len(thoughts)}
    if not thoughts:
        return found
    queries = [one for one in thoughts if one.query]
    parsed = {number: parses(one.query) for number, one in enumerate(thoughts) if one.query}
    found["coverage/with_query"] = len(queries) / len(thoughts)
    for name, values in (
        ("parsed", [parsed.get(number, False) for number in range(len(thoughts))]),
        ("parsed_queries", list(parsed.values())),
        ("abstained", abstained),
    ):
        if values:
            interval = mean_interval([float(one) for one in values])
            found[f"coverage/{name}"] = interval.mean
            found[f"coverage/{name}/low"] = interval.low
            found[f"coverage/{name}/high"] = interval.high
    if queries:
        found["patterns"] = sum(len(one.patterns) for one in queries) / len(queries)
        found["coverage/bound"] = sum(one.bound for one in queries) / len(queries)
    return found


def _iri(term: str) -> str:
    """A plain word as an IRI; anything else stays, for the parser to judge."""
    if term[0] in "?$<\"'" or ":" in term or term in _WORDS:
        return term
    word = re.sub(r"\W+", "_", term).strip("_")
    return f"<urn:{word}>" if word else term
