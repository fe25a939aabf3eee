import pytest
from hypothesis import given
from hypothesis import strategies as st

from triax.reasoning.unify import fill_all, match, shape, unify
from triax.records.query_triplets import QueryTriplet


def triplet(text):
    return QueryTriplet.parse(*(part.strip() for part in text.split("|")))


@pytest.mark.parametrize(
    ("query", "answer", "bindings", "filled"),
    [
        ("A | b | ?x", "A | b | C", {"x": "C"}, "A | b | C"),
        ("A | b | ?", "A | b | C", {}, "A | b | C"),
        ("?x | b | C", "A | b | C", {"x": "A"}, "A | b | C"),
        ("A | ?p | C", "A | wrote | C", {"p": "wrote"}, "A | wrote | C"),
        # Case, width and quotes do not matter; the query's own spelling stays.
        ("Vertigo | By | ?x", "VERTIGO | by | H", {"x": "H"}, "Vertigo | By | H"),
        ("L\u2019Eclisse | b | ?", "L'Eclisse | b | A", {}, "L\u2019Eclisse | b | A"),
        # A placeholder of the answer leaves that of the query open.
        ("?x | b | ?y", "A | b | ?", {"x": "A"}, "A | b | ?y"),
        ("?x | b | ?y", "A | b | ?z", {"x": "A"}, "A | b | ?y"),
        ("?x | b | ?x", "A | b | a", {"x": "A"}, "A | b | a"),
        # Words around a placeholder.
        ("maker of ?f | b | ?", "maker of V | b | C", {"f": "V"}, "maker of V | b | C"),
        ("Maker of ?f | b | C", "maker of V | b | C", {"f": "V"}, "maker of V | b | C"),
        ("maker of ?f | b | ?", "H | b | C", {}, "H | b | C"),
        ("maker of ?f | b | ?y", "maker of ?g | b | C", {"y": "C"}, "maker of ?f | b | C"),
        ("maker of ?f | b | ?y", "maker of ? | b | C", {"y": "C"}, "maker of ?f | b | C"),
        ("?f's maker | b | ?", "V's maker | b | C", {"f": "V"}, "V's maker | b | C"),
        ("by ?a and ?b | c | ?", "by J and E | c | D", {"a": "J", "b": "E"}, "by J and E | c | D"),
    ],
)
def test_fits(query, answer, bindings, filled):
    found = unify(triplet(query), triplet(answer))
    assert found is not None
    assert (found.bindings, str(found.filled)) == (bindings, filled)
    assert found.query == triplet(query)


@pytest.mark.parametrize(
    ("query", "answer"),
    [
        ("A | b | ?x", "B | b | C"),
        ("A | b | ?x", "A | c | C"),
        ("A | b | ?x", "A | b | ?x"),
        ("A | b | ?x", "A | b | ?"),
        ("A | b | ?x", "? | b | C"),
        ("A | b | C", "A | b | C"),
        ("?x | b | ?x", "A | b | C"),
        ("the director of ?x | is | ?", "the mother of ?y | is | H"),
        ("C++ | by | ?", "C# | by | X"),
    ],
)
def test_does_not_fit(query, answer):
    assert unify(triplet(query), triplet(answer)) is None


def test_r25_a_value_that_ends_in_a_mark_is_a_value():
    answer = triplet("A | b | What's Up, Doc?")
    found = unify(triplet("A | b | ?x"), answer)
    assert found.bindings == {"x": "What's Up, Doc?"}
    assert found.filled.kind == "resolved"


def filled(answer, *queries):
    return [str(found.filled) for found in match(triplet(answer), list(map(triplet, queries)))]


def test_all_queries_that_fit_equally_well():
    births = ("?a | born in | ?", "?b | born in | ?")
    assert filled("C | born in | 1886", *births) == ["C | born in | 1886"] * 2
    assert filled("C | born in | ?", *births) == ["C | born in | ?"] * 2


def test_the_most_specific_query_comes_first():
    """Two hops of one relation: the answer to the first hop is no answer to the second."""
    found = match(
        triplet("A | father | B"), [triplet("?x | father | ?y"), triplet("A | father | ?x")]
    )
    assert [str(one.query) for one in found] == ["A | father | ?x"]


def test_a_reworded_predicate_fits_where_nothing_else_does():
    assert filled("A | was born in | 1886", "A | born in | ?", "B | born in | ?") == [
        "A | born in | 1886"
    ]
    assert filled("A | born in | 1886", "A | was born in | ?", "A | born in | ?") == [
        "A | born in | 1886"
    ]


def test_of_two_rewordings_the_nearer_one():
    queries = ("A | died in | ?", "A | born in | ?")
    assert filled("A | was born in | Rome", *queries) == ["A | born in | Rome"]
    # `in` is in both: nothing tells them apart.
    assert len(filled("A | lived in | Rome", *queries)) == 2


def test_a_reworded_predicate_needs_something_else_in_common():
    assert filled("A | was born in | 1886", "?x | born in | ?y") == []
    assert filled("A | ?p | 1886", "A | born in | ?") == []


def test_the_shape_has_no_names():
    assert shape(triplet("A | B c | ?x")) == shape(triplet("a | b C | ?")) == ("a", "b c", "?")
    assert shape(triplet("the son of ?x | b | c"))[0] == "the son of ?"


def test_anonymous_placeholders_are_never_shared():
    queries = [triplet("?x | born in | ?"), triplet("? | wrote | ?x")]
    assert [str(one) for one in fill_all(queries, {"x": "A", "": "B"})] == [
        "A | born in | ?",
        "? | wrote | A",
    ]


terms = st.sampled_from(["A", "B", "?", "?x", "?y", "the son of ?x", "?x and ?y", "Who?"])
triplets = st.builds(QueryTriplet.parse, terms, st.sampled_from(["p", "q", "?z"]), terms)
bindings = st.dictionaries(st.sampled_from(["", "x", "y", "z"]), st.sampled_from(["V", "Why?"]))


@given(st.lists(triplets, max_size=4), bindings)
def test_filling_is_idempotent(queries, values):
    once = fill_all(queries, values)
    assert fill_all(once, values) == once
    assert all(found.name not in values or not found.name for q in once for found in q.placeholders)


@given(triplets, triplets)
def test_a_match_says_what_the_answer_says(query, answer):
    found = unify(query, answer)
    if found is None:
        return
    for mine, theirs, result in zip(query.terms, answer.terms, found.filled.terms):
        if not mine.placeholders:
            assert result == mine
        elif not theirs.placeholders:
            assert result.known == theirs.known
    assert len(found.filled.placeholders) < len(query.placeholders)
    assert unify(found.filled, answer) is None


@given(triplets, st.sampled_from(["V", "Why?"]), st.sampled_from(["W", "1911"]))
def test_a_query_is_answered_by_its_own_instance(query, first, second):
    values = {"x": first, "y": second, "z": "r", "": "U"}
    answer = query.fill(values)
    found = unify(query, answer)
    if not query.placeholders:
        assert found is None
    else:
        assert found.filled.placeholders == ()
        assert all(values[name] == value for name, value in found.bindings.items())
