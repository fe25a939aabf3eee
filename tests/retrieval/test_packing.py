import pytest
from hypothesis import given
from hypothesis import strategies as st

from triax.retrieval.packing import pack

sizes = st.lists(st.integers(0, 50), max_size=20)


@pytest.mark.parametrize(
    ("tokens", "max_tokens", "stops_with", "skips_with"),
    [
        ([4, 3, 9, 2, 1], 10, [0, 1], [0, 1, 3, 4]),  # 4 + 3 = 7; 9 is too much; 7 + 2 + 1 = 10
        ([5, 5], 10, [0, 1], [0, 1]),  # exactly full
        ([11, 1], 10, [], [1]),
        ([0, 3, 0, 1], 3, [0, 1, 2], [0, 1, 2]),  # an empty text always fits
        ([1], 0, [], []),
        ([0, 1], -5, [0], [0]),
        ([], 10, [], []),
    ],
)
def test_what_is_kept_by_hand(tokens, max_tokens, stops_with, skips_with):
    assert pack(tokens, max_tokens) == stops_with
    assert pack(tokens, max_tokens, skips=True) == skips_with


@given(sizes, st.integers(-5, 200))
def test_the_budget_holds_and_no_text_is_left_out_without_need(tokens, max_tokens):
    stopped = pack(tokens, max_tokens)
    skipped = pack(tokens, max_tokens, skips=True)
    room = max(0, max_tokens)

    # The rule of E 6.5 in so many words: a cumulative product of the mask of what fits.
    fits = [sum(tokens[: place + 1]) <= room for place in range(len(tokens))]
    assert stopped == [place for place in range(len(tokens)) if all(fits[: place + 1])]
    assert sum(tokens[place] for place in skipped) <= room
    for place in set(range(len(tokens))) - set(skipped):
        before = sum(tokens[kept] for kept in skipped if kept < place)
        assert before + tokens[place] > room


def test_what_stays_in_any_case_takes_from_the_rest():
    # 4, then 9 although only 6 are left; so 2 has no room, and an empty text has.
    always = [False, True, False, False]
    assert pack([4, 9, 2, 0], 10, skips=True, always=always) == [0, 1, 3]
    # The first that does not fit ends all but what stays in any case.
    assert pack([11, 9, 2], 12, always=[False, False, True]) == [0, 2]


def test_less_than_no_tokens_is_refused():
    with pytest.raises(ValueError, match="-3 tokens, expected 0 or more"):
        pack([2, -3], 10)
