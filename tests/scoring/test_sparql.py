import pytest

from triax.scoring.sparql import parse_rate, parses, wrapped


@pytest.mark.parametrize(
    "query",
    [
        'SELECT ?city WHERE { "The Leopard" written_by ?a . ?a born_in ?city . }',
        "SELECT ?x WHERE { <Paradise Creek> tributary of ?x }",
        'select ?x where {\n "A" is ?x\n ?x is "B \\"quoted\\" name"\n}',
        "ASK WHERE { ?x is_in Київ }",
        "SELECT ?x WHERE { :Vertigo :directed_by ?x . }",
    ],
)
def test_plain_words_are_wrapped_and_then_it_is_sparql(query):
    assert parses(query)


@pytest.mark.parametrize(
    "query",
    ["", "SELECT ?x", "SELECT WHERE { ?a b ?c }", "SELECT ?x WHERE { ?a b }", "no query", "}{"],
)
def test_what_is_no_query_does_not_parse(query):
    assert not parses(query)


def test_bare_words_alone_are_no_sparql():
    """What the wrapping is for: rdflib refuses the query as it was written."""
    from rdflib.plugins.sparql.parser import parseQuery

    query = 'SELECT ?a WHERE { "The Leopard" written by ?a . }'
    with pytest.raises(Exception):
        parseQuery(query)
    parseQuery(wrapped(query))


def test_the_rate_is_a_share_or_not_known():
    good, bad = "SELECT ?x WHERE { ?x is ?y }", "SELECT"
    assert parse_rate([good, good, bad, ""]) == 0.5
    assert parse_rate([]) is None
