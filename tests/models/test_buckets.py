import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from triax.models.buckets import (
    LENGTHS,
    Batch,
    bucket_lengths,
    pad_batch,
    plan_batches,
    row_counts,
)


def test_row_counts_by_hand():
    assert row_counts(16, 1024) == (64, 16, 4, 1)
    assert row_counts(128, 1024) == (8, 2, 1)
    assert row_counts(16, 1024, row_multiple=8) == (512, 128, 32, 8)
    assert row_counts(2048, 1024) == (1,)


def test_bucket_lengths_end_at_the_limit():
    assert bucket_lengths(50, (16, 32, 64)) == (16, 32, 50)
    assert bucket_lengths(64, (64, 16, 32)) == (16, 32, 64)
    with pytest.raises(ValueError, match="max_length is 0"):
        bucket_lengths(0)


def test_plan_by_hand():
    """Budget 64: rows of 16 go four, one; rows of 32 go two, one. Three of four are padded."""
    plan = plan_batches([3, 20, 16, 1, 17, 18], 64, (16, 32))
    assert plan == [Batch((1, 5), 2, 32), Batch((4,), 1, 32), Batch((2, 0, 3), 4, 16)]


@given(
    st.lists(st.integers(0, 512), max_size=300),
    st.integers(1, 5000),
    st.sampled_from([1, 3, 8]),
)
def test_r08_every_row_once_within_the_budget_and_few_shapes(lengths, batch_tokens, multiple):
    plan = plan_batches(lengths, batch_tokens, LENGTHS, multiple)
    assert sorted(p for batch in plan for p in batch.positions) == list(range(len(lengths)))
    steps = dict(zip(LENGTHS, (-1, *LENGTHS)))
    for batch in plan:
        assert 0 < len(batch.positions) <= batch.rows
        assert batch.rows in row_counts(batch.length, batch_tokens, multiple)
        assert batch.rows == multiple or batch.rows * batch.length <= batch_tokens * multiple
        for position in batch.positions:
            assert steps[batch.length] < lengths[position] <= batch.length
        if batch.rows > multiple:
            assert 4 * len(batch.positions) >= 3 * batch.rows
    assert [batch.length for batch in plan] == sorted((b.length for b in plan), reverse=True)


@given(st.lists(st.integers(1, 64), max_size=60), st.randoms())
def test_r18_the_shapes_do_not_depend_on_the_order(lengths, random):
    shuffled = random.sample(lengths, len(lengths))

    def shapes(rows):
        return [(batch.rows, batch.length) for batch in plan_batches(rows, 256)]

    assert shapes(lengths) == shapes(shuffled)


def test_r08_a_row_that_fits_no_bucket_is_named():
    with pytest.raises(ValueError, match="row 1 has 33 tokens, the longest bucket 32"):
        plan_batches([5, 33], 64, (16, 32))


def test_no_rows_no_batches():
    assert plan_batches([], 64) == []


def test_pad_batch_by_hand():
    ids, mask = pad_batch(Batch((2, 0), 3, 4), [[7, 8], [1], [5, 6, 9]], pad_id=1)
    np.testing.assert_array_equal(ids, [[5, 6, 9, 1], [7, 8, 1, 1], [1, 1, 1, 1]])
    np.testing.assert_array_equal(mask, [[1, 1, 1, 0], [1, 1, 0, 0], [0, 0, 0, 0]])
    assert ids.dtype == np.int32
