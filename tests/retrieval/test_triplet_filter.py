from triax.records.usage import Usage
from triax.retrieval.triplet_filter import Kept, TripletFilter


def test_what_keeps_is_a_filter():
    class First:
        def keep(self, groups, candidates):
            return [Kept(found[:1] and (0,)) for found in candidates]

    assert isinstance(First(), TripletFilter)
    assert not isinstance(object(), TripletFilter)
    assert [one.places for one in First().keep([["q"], ["r"]], [["x", "y"], []])] == [(0,), []]


def test_choosing_costs_nothing_unless_it_says_so():
    assert Kept((0,)).usage == Usage()
