import pytest
from hypothesis import given
from hypothesis import strategies as st

from triax.records.query_triplets import QueryTriplet
from triax.records.sparql_text import (
    SparqlThoughts,
    find_query,
    statements,
    triple_patterns,
)

OPEN = 'SELECT ?c WHERE {\n "A" by ?a .\n ?a born_in ?c .'
# What a looping model may write; each once as it is, once in a query.
PIECES = [
    "SELECT ",
    "WHERE ",
    "{",
    "}",
    "?a ",
    '"',
    "'",
    "<",
    "\n",
    "(",
    ")",
    ";",
    ", ",
    "a.b ",
    "\\",
]


@pytest.mark.parametrize(
    ("before", "query", "after"),
    [
        ("Step 1:\n", OPEN + "\n}", "\nStep 2:\n?a = B }"),
        ("```sparql\n", "select ?x { ?x is ?y }", "\n```"),
        ("", "ASK WHERE { ?x is ?y }", " yes"),
        ("", "SELECT (COUNT(?c) AS ?n) WHERE { ?c is film }", ""),
        ("", "SELECT ?c { ?c is ?d } ORDER BY DESC(?d)\nLIMIT 1", "\n?c = B"),
        ("", "SELECT ?c { { SELECT ?d { ?d is ?e } } OPTIONAL { ?c is ?d } }", "\n}"),
        ("", 'SELECT ?c { "a } b" is ?c # }\n }', " }"),
        ("We select ?c by:\n", "SELECT ?c { ?c is ?d }", ""),
        # Braces that do not close, or are not there, are of the query all the same.
        ("", OPEN, "\nStep 2: Go"),
        ("", OPEN, "\n\nThe director is B"),
        ("", OPEN, "\n- ?a = B"),
        ("**Step 1**\n", "SELECT ?c WHERE ?a born_in ?c .", "\n**FINAL ANSWER:** D"),
        ("", "SELECT city WHERE { ?a born_in ?c }", ""),
    ],
)
def test_where_the_query_stands(before, query, after):
    text = before + query + after
    start, end = find_query(text)
    assert text[start:end].strip() == query


@pytest.mark.parametrize(
    "text",
    ["", "I select the film { that } is best", "Select the right one: {a b c}", "Ask him where."],
)
def test_prose_has_none(text):
    assert find_query(text) == (0, 0)


@pytest.mark.parametrize(
    ("body", "patterns"),
    [
        ("?a b ?c . ?d e ?f", [("?a", "b", "?c"), ("?d", "e", "?f")]),
        ('<Paradise Creek> tributary of ?x .\n?x "is" "U.S. river"',
         [("<Paradise Creek>", "tributary of", "?x"), ("?x", '"is"', '"U.S. river"')]),
        ("?a b ?c\n?d\n e ?f\n", [("?a", "b", "?c"), ("?d", "e", "?f")]),
        ("?a b ?c ;\n  d ?e , ?f .", [("?a", "b", "?c"), ("?a", "d", "?e"), ("?a", "d", "?f")]),
        ("?a b ?c FILTER (?c > 3.5 && ?c < 4) ?d e ?f OPTIONAL { ?f g ?h }",
         [("?a", "b", "?c"), ("?d", "e", "?f"), ("?f", "g", "?h")]),
        ("{ SELECT ?a WHERE { ?a b ?c } }", [("?a", "b", "?c")]),
        ("?a b O'Brien's . ?c is St.Paul . # ?d e ?f",
         [("?a", "b", "O'Brien's"), ("?c", "is", "St.Paul")]),
        # `;` and `,` behind what is no pattern have nothing to go on.
        ("?a b ; c ?d . ?e , ?f", []),
        ("", []),
    ],
)  # fmt: skip
def test_patterns(body, patterns):
    assert triple_patterns(f"SELECT ?a WHERE {{ {body} }} LIMIT 1 . x y z") == patterns


def test_a_statement_says_where_it_stands():
    query = 'SELECT ?a { ?a "is not" ?b ; c ?d }'
    assert [query[one.start : one.end] for one in statements(query)] == ['?a "is not" ?b', "c ?d"]
    # To the grammar, the end of a line ends nothing.
    [one] = statements("SELECT ?a { ?a b ?c\n?d e ?f }")
    assert one.terms == ("?a", "b", "?c", "?d", "e", "?f") and one.is_pattern


def test_the_share_of_variables_that_are_bound():
    patterns = (QueryTriplet.parse("A", "by", "?a"), QueryTriplet.parse("?a", "born in", "?c"))
    assert SparqlThoughts("...", patterns, {"?a": "B", "?z": "Z"}).bound == 0.5
    assert SparqlThoughts("").bound == 0.0


@given(st.one_of(st.text(max_size=200), st.lists(st.sampled_from(PIECES)).map("".join)))
def test_whatever_is_written_is_read(text):
    for written in (text, f"SELECT ?x WHERE {{{text}}}"):
        start, end = find_query(written)
        assert 0 <= start <= end <= len(written)
        query = written[start:end]
        found = list(statements(query))
        # In order, apart from each other, and each with what it says it has.
        ends = [0, *(one.end for one in found)]
        assert all(end <= one.start < one.end for end, one in zip(ends, found))
        assert all(term in query[one.start : one.end] for one in found for term in one.terms)
        assert all(map(all, triple_patterns(query)))
