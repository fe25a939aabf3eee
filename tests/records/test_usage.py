from hypothesis import given
from hypothesis import strategies as st

from triax.records.usage import Usage

counts = st.integers(0, 1000)
usages = st.builds(Usage, counts, counts, counts, counts, counts.map(float))


@given(usages, usages, usages)
def test_usages_add_up(a, b, c):
    assert (a + b) + c == a + (b + c)
    assert a + b == b + a
    assert a + Usage() == a


def test_the_parts_of_a_sum():
    assert Usage(1, 0, 10, 2, 0.5) + Usage(2, 1, 20, 3, 0.25) == Usage(3, 1, 30, 5, 0.75)
