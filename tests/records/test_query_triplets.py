import pytest
from hypothesis import given
from hypothesis import strategies as st

from triax.records.query_triplets import Placeholder, QueryTriplet, Term


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("?", (Placeholder(),)),
        (" ? ", (Placeholder(),)),
        ("?x", (Placeholder("x"),)),
        ("?director_1", (Placeholder("director_1"),)),
        ("? x", (Placeholder("x"),)),
        ("?ж", (Placeholder("ж"),)),
        ("the director of ?film", ("the director of", Placeholder("film"))),
        ("?film directors", (Placeholder("film"), "directors")),
        ("?film's director", (Placeholder("film"), "'s director")),
        ("from ?a to ?b", ("from", Placeholder("a"), "to", Placeholder("b"))),
        ("Vertigo", ("Vertigo",)),
        # R25: part of a name.
        ("What's Up, Doc?", ("What's Up, Doc?",)),
        ("Who Framed Roger Rabbit?", ("Who Framed Roger Rabbit?",)),
        ("Doc? Yes", ("Doc? Yes",)),
        ("a ? b", ("a ? b",)),
        ("O\u00f9 \u00eates-vous ?", ("O\u00f9 \u00eates-vous ?",)),
        ("\u00bfQui\u00e9n?", ("\u00bfQui\u00e9n?",)),
        ("??", ("??",)),
        ("?x?", ("?x?",)),
        ("is it ?x?", ("is it ?x?",)),
        ("e?x", ("e?x",)),
        ("http://a/b?c=d", ("http://a/b?c=d",)),
    ],
)
def test_r25_what_is_a_placeholder(text, parts):
    assert Term.parse(text).parts == parts


words = st.text(st.characters(categories=["L", "Nd", "P", "S"], exclude_characters="?"), min_size=1)
marked = st.lists(st.sampled_from("?ab, '"), min_size=2, max_size=12).map("".join)


@given(words, st.integers(1, 3))
def test_r25_a_mark_at_the_end_of_a_name_is_literal(name, marks):
    text = name + "?" * marks
    assert Term.parse(text).parts == (text,)


@given(marked)
def test_r25_only_whole_fields_and_tokens_are_placeholders(text):
    term = Term.parse(text)
    if not term.placeholders:
        assert term.known == text.strip()
    for found in term.placeholders:
        is_whole = text.strip().startswith("?") and text.strip()[1:].strip() == found.name
        tokens = text.replace(",", " ").replace("'", " ").split()
        assert is_whole or f"?{found.name}" in tokens


@given(st.text(max_size=20))
def test_parsing_what_was_shown_gives_the_same(text):
    term = Term.parse(text)
    assert Term.parse(str(term)) == term


@given(st.text(max_size=20))
def test_r25_literals_are_never_placeholders(text):
    term = Term.literal(text)
    assert (term.placeholders, term.known, str(term)) == ((), text.strip(), text.strip())


@pytest.mark.parametrize(
    ("fields", "kind"),
    [
        (("A", "b", "C"), "resolved"),
        (("What's Up, Doc?", "is", "What?"), "resolved"),
        (("A", "b", "?"), "searchable"),
        (("A", "b", "?x"), "searchable"),
        (("?x", "b", "?x"), "searchable"),
        (("the director of ?f", "is", "H"), "searchable"),
        (("Who Framed Roger Rabbit?", "directed by", "?d"), "searchable"),
        (("?", "b", "?"), "fuzzy"),
        (("?x", "b", "?y"), "fuzzy"),
        (("?x", "b", "?"), "fuzzy"),
        (("?", "?", "?"), "fuzzy"),
        (("from ?a to ?b", "is", "C"), "fuzzy"),
    ],
)
def test_the_kind_is_the_number_of_unknown_things(fields, kind):
    assert QueryTriplet.parse(*fields).kind == kind


def test_the_query_is_what_is_known():
    assert QueryTriplet.parse("the director of ?film", "born in", "?").query == (
        "the director of born in"
    )
    assert QueryTriplet.parse("?", "?", "?").query == ""


def test_placeholders_stand_in_reading_order_with_repeats():
    query = QueryTriplet.parse("?b and ?a", "?", "?b")
    assert [found.name for found in query.placeholders] == ["b", "a", "", "b"]


def test_filling():
    query = QueryTriplet.parse("the director of ?film", "knows", "?who")
    assert str(query.fill({"film": "Vertigo"})) == "the director of Vertigo | knows | ?who"
    assert query.fill({}) == query
    assert query.fill({"other": "x"}) == query
    whole = query.fill({"film": "What?", "who": "?"})
    assert (whole.kind, whole.placeholders) == ("resolved", ())
    assert whole.as_triplet(0.5).fields == ("the director of What?", "knows", "?")
    assert whole.as_triplet(0.5).confidence == 0.5


def test_an_anonymous_placeholder_binds_under_the_empty_name():
    assert str(QueryTriplet.parse("A", "b", "?").fill({"": "C"})) == "A | b | C"


def test_an_open_query_is_no_triplet():
    with pytest.raises(ValueError, match=r"A \| b \| \?x still has 1 placeholders; fill them"):
        QueryTriplet.parse("A", "b", "?x").as_triplet()


fields = st.sampled_from(["A", "?", "?x", "?y", "the son of ?x", "Who?", "?x and ?y"])


@given(
    fields, fields, fields, st.dictionaries(st.sampled_from(["", "x", "y"]), st.text(max_size=4))
)
def test_filling_leaves_no_filled_name_open(subject, predicate, object, values):
    query = QueryTriplet.parse(subject, predicate, object)
    filled = query.fill(values)
    assert [one for one in filled.placeholders] == [
        one for one in query.placeholders if one.name not in values
    ]
    assert filled.fill(values) == filled
