from hypothesis import given
from hypothesis import strategies as st

from triax.records.query_triplets import QueryTriplet
from triax.records.state import Resolved, State
from triax.records.triplets import Triplet


def triplet(text):
    return QueryTriplet.parse(*(part.strip() for part in text.split("|")))


def test_query_triplets_are_sorted_by_kind_in_order_of_arrival():
    queries = [triplet(text) for text in ("C | d | ?x", "?x | y | ?", "A | b | C", "A | b | ?")]
    assert State.of(queries) == State(
        (Resolved(Triplet("A", "b", "C"), (), 0),), (queries[0], queries[3]), (queries[1],)
    )


def test_repeats_go():
    query = triplet("A | b | ?")
    assert State.of([query, triplet("A | b | ?"), query]).searchable == (query,)


def test_nothing_open_is_resolved():
    assert State().is_resolved
    assert State.of([triplet("A | b | C")]).is_resolved
    assert not State.of([triplet("A | b | ?")]).is_resolved
    assert not State.of([triplet("? | b | ?")]).is_resolved


def test_r25_a_name_with_a_mark_is_resolved():
    assert State.of([triplet("What's Up, Doc? | released in | 1972")]).is_resolved


fields = st.sampled_from(["A", "B?", "?", "?x", "the son of ?x"])


@given(st.lists(st.builds(QueryTriplet.parse, fields, fields, fields)))
def test_every_query_triplet_is_in_one_set(queries):
    state = State.of(iter(queries))
    known = {one.triplet.fields for one in state.resolved}
    assert len(known) + len(state.searchable) + len(state.fuzzy) == len(set(queries))
