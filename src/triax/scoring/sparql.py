"""Whether written SPARQL is SPARQL, by rdflib's parser; plain words are wrapped as in the paper.

Source: "The Reasoning Bottleneck in Graph-RAG" (Zarinkia, Srinivasan, Thomo, 2026, table of parse
rates). The prompt asks for predicates in plain words, which no grammar allows bare.
"""

import re
from collections.abc import Sequence

_BODY = re.compile(r"(?s)\{(.*)\}")
_WORD = re.compile(r"""("[^"\n]*"|'[^'\n]*'|<[^<>\n]*>|[?$]\w+|[.;,{}]|[^\s"'<>?$.;,{}]+)""")
_KEYWORDS = frozenset("a true false optional union filter minus".split())


def wrapped(query: str) -> str:
    """A query whose plain words between the braces are IRIs; several in a row are one.

    A pattern needs three terms: of more, all between the first and the last are its predicate.
    Subjects in quotes, which are no terms of RDF, become IRIs too.

    >>> wrapped('SELECT ?c WHERE { "The Leopard" written by ?a . ?a born_in ?c }')
    'SELECT ?c WHERE { <urn:The_Leopard> <urn:written_by> ?a . ?a <urn:born_in> ?c . }'
    """
    body = _BODY.search(query)
    if body is None:
        return query
    patterns, terms = [], []
    for word in [*_WORD.findall(body[1].replace("\n", " . ")), "."]:
        if word not in (".", ";"):
            terms.append(word)
        elif terms:
            patterns.append(_pattern(terms))
            terms = []
    shown = " ".join(f"{one} ." for one in patterns)
    return f"{query[: body.start()].strip()} {{ {shown} }}"


def parses(query: str) -> bool:
    """Whether rdflib takes the wrapped query.

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


def parse_rate(queries: Sequence[str]) -> float | None:
    """The share of queries that parse; an empty one does not. None where there is none."""
    return sum(map(parses, queries)) / len(queries) if queries else None


def _pattern(terms: Sequence[str]) -> str:
    if len(terms) < 3 or any(one in "{}," for one in terms):
        return " ".join(terms)
    subject, predicate, object = terms[0], terms[1:-1], terms[-1]
    middle = predicate[0] if len(predicate) == 1 else "_".join(_bare(one) for one in predicate)
    return f"{_iri(subject)} {_iri(middle)} {object if object[0] in '?$<' else _literal(object)}"


def _iri(term: str) -> str:
    if term[0] in "?$" or term.lower() in _KEYWORDS:
        return term
    word = re.sub(r"\W+", "_", _bare(term)).strip("_")
    return f"<urn:{word}>"


def _literal(term: str) -> str:
    return '"' + _bare(term).replace("\\", "").replace('"', "") + '"'


def _bare(term: str) -> str:
    return term[1:-1] if term[0] in "\"'<" and len(term) > 1 else term
