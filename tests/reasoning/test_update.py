import pytest
from hypothesis import given
from hypothesis import strategies as st

from triax.reasoning.update import stop_reason, update
from triax.records.query_triplets import QueryTriplet
from triax.records.state import Resolved, State


def triplet(text):
    return QueryTriplet.parse(*(part.strip() for part in text.split("|")))


def state(*texts):
    return State.of(map(triplet, texts))


def move(before, *answers):
    return update(before, [triplet(text) for text in answers], 3)


def shown(after):
    return (
        [" | ".join(one.triplet.fields) for one in after.resolved],
        [str(query) for query in after.searchable],
        [str(query) for query in after.fuzzy],
    )


def test_a_value_is_put_wherever_its_placeholder_stands():
    """One name in three triplets: one answer moves all of them on."""
    before = state(
        "V | directed by | ?d", "?d | born in | ?c", "?d | child of | ?p", "?p | of | ?c"
    )
    after = move(before, "V | directed by | H").state
    assert shown(after) == (
        ["V | directed by | H"],
        ["H | born in | ?c", "H | child of | ?p"],
        ["?p | of | ?c"],
    )
    assert after.resolved == (Resolved(after.resolved[0].triplet, round=3),)


def test_two_branches_are_told_apart():
    before = state("F | by | ?a", "G | by | ?b", "?a | born in | ?", "?b | born in | ?")
    after = move(before, "G | by | E", "F | by | M", "E | born in | 1911").state
    assert shown(after) == (
        ["F | by | M", "G | by | E", "E | born in | 1911"],
        ["M | born in | ?"],
        [],
    )


def test_what_is_not_answered_stays():
    before = state("F | by | ?a", "G | by | ?b", "?a | born in | ?")
    found = move(before)
    assert (found.state, found.num_unmatched) == (before, 0)


def test_anonymous_placeholders_are_not_shared():
    after = move(state("F | by | ?", "G | by | ?"), "F | by | M").state
    assert shown(after) == (["F | by | M"], ["G | by | ?"], [])


def test_an_ambiguous_fact_binds_nothing_and_is_kept():
    before = state("?a | born in | ?", "?b | born in | ?", "F | by | ?a", "G | by | ?b")
    found = move(before, "M | born in | 1886")
    assert shown(found.state) == (
        ["M | born in | 1886"],
        ["F | by | ?a", "G | by | ?b"],
        ["?a | born in | ?", "?b | born in | ?"],
    )
    assert found.num_unmatched == 0


def test_an_ambiguous_searchable_answer_is_searched_beside_them():
    before = state("?a | born in | ?", "?b | born in | ?")
    found = move(before, "M | born in | ?")
    assert shown(found.state)[1:] == (
        ["M | born in | ?"],
        ["?a | born in | ?", "?b | born in | ?"],
    )
    assert move(found.state, "M | born in | ?").state == found.state


def test_an_answer_becomes_unambiguous_by_the_others():
    before = state("?a | born in | ?", "?b | born in | ?", "F | by | ?a", "G | by | ?b")
    after = move(before, "M | born in | ?", "E | born in | 1911", "F | by | M").state
    # Once ?a is M, only ?b is left for E.
    assert shown(after) == (
        ["F | by | M", "G | by | E", "E | born in | 1911"],
        ["M | born in | ?"],
        [],
    )


def test_the_same_relation_twice():
    """`A | father | B` is the first hop; the second is `B | father | ?y`, not yet known."""
    before = state("A | father | ?x", "?x | father | ?y")
    assert shown(move(before, "A | father | B").state) == (
        ["A | father | B"],
        ["B | father | ?y"],
        [],
    )
    both = move(before, "B | father | C", "A | father | B").state
    assert shown(both)[0] == ["A | father | B", "B | father | C"]


def test_two_open_triplets_that_become_the_same_are_one():
    before = state("F | by | ?a", "G | by | ?b", "?a | born in | ?", "?b | born in | ?")
    after = move(before, "F | by | M", "G | by | M", "M | born in | 1886").state
    assert shown(after) == (["F | by | M", "G | by | M", "M | born in | 1886"], [], [])


def test_reworded_predicates_keep_the_wording_of_the_question():
    after = move(state("V | directed by | ?d"), "V | was directed by | H").state
    assert shown(after)[0] == ["V | directed by | H"]


def test_words_around_a_placeholder():
    before = state("the director of ?f | born in | ?y", "?f | released in | 1958")
    after = move(before, "Vertigo | released in | 1958").state
    assert shown(after)[1] == ["the director of Vertigo | born in | ?y"]


def test_what_fits_nothing_is_dropped_and_counted():
    before = state("F | by | ?a")
    found = move(before, "X | y | Z", "? | by | ?", "Q | by | ?")
    assert (found.state, found.num_unmatched) == (before, 3)


@pytest.mark.parametrize("echo", ["F | by | ?a", "F | by | ?", "F | by | ?x", "f | BY | ?a"])
def test_an_echo_is_neither_progress_nor_a_fault(echo):
    before = state("F | by | ?a")
    found = move(before, echo)
    assert (found.state, found.num_unmatched) == (before, 0)


def test_a_known_fact_is_not_known_twice():
    before = state("F | by | M", "M | born in | ?")
    found = move(before, "f | BY | m")
    assert (found.state, found.num_unmatched) == (before, 0)


def test_a_repeated_fact_is_no_second_value():
    """Two children are asked for; the one that is known is not the other one too."""
    before = state("A | child | B", "A | child | ?other")
    assert move(before, "A | child | B").state == before
    assert shown(move(before, "A | child | C", "A | child | B").state)[0] == [
        "A | child | B",
        "A | child | C",
    ]


def test_the_first_of_two_values_counts():
    found = move(state("F | by | ?a", "?a | born in | ?"), "F | by | M", "F | by | N")
    assert shown(found.state) == (["F | by | M"], ["M | born in | ?"], [])
    assert found.num_unmatched == 1


def test_r26_a_placeholder_is_no_value():
    before = state("F | by | ?a")
    assert move(before, "F | by | ?").state == before


NOTHING_NEW = "nothing newly searchable"


@pytest.mark.parametrize(
    ("before", "after", "round", "has_evidence", "reason"),
    [
        (["A | b | ?"], ["A | b | C"], 1, True, "resolved"),
        (["A | b | ?"], ["A | b | C"], 3, False, "resolved"),
        (["A | b | ?"], ["A | b | ?"], 1, False, "no evidence"),
        (["A | b | ?"], ["A | b | ?"], 1, True, "no progress"),
        (["A | b | ?", "D | e | ?"], ["A | b | C", "D | e | ?"], 1, True, NOTHING_NEW),
        (["A | b | ?x", "?x | e | ?"], ["A | b | C", "C | e | ?"], 1, True, ""),
        (["A | b | ?x", "?x | e | ?"], ["A | b | C", "C | e | ?"], 3, True, "max rounds"),
        # A fuzzy triplet may still become searchable.
        (["A | b | ?", "?x | e | ?"], ["A | b | C", "?x | e | ?"], 1, True, ""),
    ],
)  # fmt: skip
def test_r17_stop_reasons(before, after, round, has_evidence, reason):
    found = stop_reason(state(*before), state(*after), round, 3, has_evidence=has_evidence)
    assert found == reason


terms = st.sampled_from(["A", "B", "?", "?x", "?y", "?z", "the son of ?x"])
predicates = st.sampled_from(["p", "q", "likes p"])
triplets = st.builds(QueryTriplet.parse, terms, predicates, terms)
states = st.lists(triplets, max_size=4).map(State.of)
answers = st.lists(
    st.builds(
        QueryTriplet.parse,
        st.sampled_from(["A", "B", "C", "the son of C", "?"]),
        predicates,
        st.sampled_from(["A", "B", "D", "Who?", "?"]),
    ),
    max_size=4,
)


@given(states, answers)
def test_the_resolved_set_only_grows(before, given):
    after = update(before, given, 1).state
    assert after.resolved[: len(before.resolved)] == before.resolved
    fields = [one.triplet.fields for one in after.resolved]
    assert len(set(fields)) == len(fields)


@given(states, answers)
def test_no_open_triplet_is_lost(before, given):
    after = update(before, given, 1).state
    now = [one.triplet.fields for one in after.resolved]
    now += [tuple(map(str, query.terms)) for query in after.searchable + after.fuzzy]
    for query in before.searchable + before.fuzzy:
        known = [None if term.placeholders else term.known for term in query.terms]
        assert any(
            all(mine is None or mine == theirs for mine, theirs in zip(known, fields))
            for fields in now
        )


def words(queries):
    return {word for query in queries for term in query.terms for word in term.known.split()}


@given(states, answers)
def test_no_value_is_invented(before, given):
    after = update(before, given, 1).state
    then = [QueryTriplet.parse(*one.triplet.fields) for one in before.resolved]
    now = [QueryTriplet.parse(*one.triplet.fields) for one in after.resolved]
    assert words([*now, *after.searchable, *after.fuzzy]) <= words(
        [*then, *before.searchable, *before.fuzzy, *given]
    )


@given(states, answers)
def test_the_sets_hold_what_their_names_say(before, given):
    found = update(before, given, 1)
    assert all(query.kind == "searchable" for query in found.state.searchable)
    assert all(query.kind == "fuzzy" for query in found.state.fuzzy)
    assert 0 <= found.num_unmatched <= len(given)


@given(states, answers)
def test_repeated_answers_change_nothing(before, given):
    twice = [*given, *given]
    assert update(before, twice, 1) == update(before, given, 1)


VALUES = {"x": "X1", "y": "Y1", "z": "Z1", "": "U1"}


@given(st.lists(triplets, max_size=4), st.randoms(use_true_random=False))
def test_answers_that_agree_may_come_in_any_order(queries, random):
    """All answers say what one assignment of the names says."""
    before = State.of(queries)
    given = list(dict.fromkeys(query.fill(VALUES) for query in queries))
    shuffled = random.sample(given, len(given))
    one, two = (update(before, some, 1).state for some in (given, shuffled))
    assert set(one.resolved) == set(two.resolved)
    assert set(one.searchable) == set(two.searchable)
    assert set(one.fuzzy) == set(two.fuzzy)


@given(st.lists(triplets, min_size=1, max_size=4, unique=True))
def test_answers_to_all_resolve_all_that_can_be_told_apart(queries):
    queries = [query for query in queries if "" not in {one.name for one in query.placeholders}]
    before = State.of(queries)
    given = [query.fill(VALUES) for query in queries]
    after = update(before, given, 1).state
    assert {one.triplet.fields for one in after.resolved} >= {
        query.as_triplet().fields for query in given
    }
