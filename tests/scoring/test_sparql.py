import pytest
from hypothesis import given
from hypothesis import strategies as st

from triax.records.query_triplets import QueryTriplet
from triax.records.sparql_text import SparqlThoughts
from triax.scoring.significance import mean_interval
from triax.scoring.sparql import parses, sparql_figures, wrapped


@pytest.mark.parametrize(
    "query",
    [
        'SELECT ?city WHERE { "The Leopard" written_by ?a . ?a born_in ?city . }',
        'select ?x where {\n "A" is ?x .\n ?x is "B \\"quoted\\" name"\n}',
        "ASK WHERE { ?x is_in Київ }",
        "SELECT ?x WHERE { :Vertigo :directed_by ?x . }",
        # What the grammar has beside plain patterns stays as it is.
        'SELECT ?x WHERE { ?x is "A", "B"@en ; born_on 1899 . OPTIONAL { ?x born_in ?y } }',
        "SELECT ?x WHERE { ?x is ?y . FILTER(?y >= 3.5 && ?y != 4) ?y is ?z }",
        "SELECT ?x WHERE { ?x is ?y } ORDER BY DESC(?y) LIMIT 1",
        "SELECT ?x WHERE { ?x a film . { SELECT ?y WHERE { ?y is ?z } } }",
        "SELECT ?x WHERE {\n?x\n  is ?y . # it's a note\n}",
    ],
)
def test_plain_words_are_wrapped_and_then_it_is_sparql(query):
    assert parses(query)


@pytest.mark.parametrize(
    "query",
    [
        "",
        "SELECT ?x",
        "SELECT WHERE { ?a b ?c }",
        "SELECT city WHERE { ?a b ?c }",
        "SELECT ?x WHERE { ?a b }",
        "SELECT ?x WHERE { ?a b ?x",
        "SELECT ?x WHERE ?a b ?x",
        # What the authors' script does not mend either.
        "SELECT ?x WHERE { ?a b ?x\n?x c ?d }",
        "SELECT ?x WHERE { ?a written by ?x }",
        "SELECT ?x WHERE { <Paradise Creek> tributary_of ?x }",
        "SELECT ?x WHERE { ?a = ?x }",
        "SELECT ?x WHERE { ?a b ?x . FILTER(?x > ) }",
        "SELECT ?x WHERE { ?a b ?x } ORDER ?x LIMIT",
        'SELECT ?x WHERE { "A is ?x }',
        "no query",
        "}{",
    ],
)
def test_what_is_no_query_does_not_parse(query):
    assert not parses(query)


def test_bare_words_alone_are_no_sparql():
    """What the wrapping is for: rdflib refuses the query as it was written."""
    from rdflib.plugins.sparql.parser import parseQuery

    query = 'SELECT ?a WHERE { "The Leopard" written_by ?a . }'
    with pytest.raises(Exception):
        parseQuery(query)
    parseQuery(wrapped(query))


GOOD, CUT = "SELECT ?x WHERE { ?x is ?y }", "SELECT ?x WHERE { ?x is ?y"


def test_figures_by_hand():
    """Four questions: a query that parses, one that was cut, and two without any."""
    is_y = (QueryTriplet.parse("?x", "is", "?y"),)
    thoughts = [
        SparqlThoughts(GOOD, is_y * 3, {"?x": "A"}),
        SparqlThoughts(CUT, is_y),
        SparqlThoughts(""),
        SparqlThoughts("", (), {"?x": "A"}),
    ]
    found = sparql_figures(thoughts, [False, True, False, False])
    assert {key: value for key, value in found.items() if key[-4:] not in ("/low", "high")} == {
        "questions": 4,
        "coverage/with_query": 0.5,
        "coverage/parsed": 0.25,
        "coverage/parsed_queries": 0.5,
        "coverage/abstained": 0.25,
        "patterns": 2.0,
        "coverage/bound": 0.25,
    }
    interval = mean_interval([1.0, 0.0, 0.0, 0.0])
    assert (found["coverage/parsed/low"], found["coverage/parsed/high"]) == (
        interval.low,
        interval.high,
    )


def test_r09_what_was_not_measured_is_missing():
    assert sparql_figures([], []) == {"questions": 0}
    found = sparql_figures([SparqlThoughts("")], [False])
    assert found["coverage/parsed"] == 0.0
    assert not {"coverage/parsed_queries", "patterns", "coverage/bound"} & set(found)


@given(st.text(max_size=100))
def test_whatever_is_written_is_judged(text):
    assert parses(f"SELECT ?x WHERE {{ ?x is ?y . {text}") in (True, False)
    # Braces of their own may close it, but a word behind the last one is none of the grammar's.
    assert not parses(f"SELECT ?x WHERE {{ ?x is ?y }} {text.replace('#', '')} word")
