from collections import Counter

import numpy as np
import pytest

from triax.training.batches import BucketedBatches

# Four fit in 8 tokens, three in 16, and two are cut to 16.
LENGTHS = [3, 8, 16, 9, 1, 40, 7, 12, 17]


def epoch(batches, number, seed=0):
    start = number * batches.steps_per_epoch
    return [batches(start + n, seed) for n in range(batches.steps_per_epoch)]


def test_each_example_stands_once_in_an_epoch_in_its_bucket():
    batches = BucketedBatches(LENGTHS, 32, [8, 16])
    assert batches.rows == {8: 4, 16: 2}
    assert batches.steps_per_epoch == 1 + 3
    for number in (0, 1, 5):
        found = epoch(batches, number)
        assert sorted(n for rows, _ in found for n in rows if n >= 0) == list(range(9))
        for rows, width in found:
            assert len(rows) == batches.rows[width]
            assert {LENGTHS[n] > 8 for n in rows if n >= 0} == {width == 16}


def test_a_short_batch_is_filled_with_nothing():
    batches = BucketedBatches(LENGTHS, 32, [8, 16])
    padded = Counter((width, int((rows < 0).sum())) for rows, width in epoch(batches, 0))
    assert padded == {(8, 0): 1, (16, 0): 2, (16, 1): 1}
    for rows, _ in epoch(batches, 0):
        assert (np.diff(rows < 0) >= 0).all()  # the nothing comes last


def test_the_order_is_a_function_of_seed_and_step():
    one, other = (BucketedBatches(LENGTHS * 9, 32, [8, 16]) for _ in range(2))
    steps = range(2 * one.steps_per_epoch)
    forwards = [one(step, 7) for step in steps]
    backwards = [other(step, 7) for step in reversed(steps)][::-1]
    for (rows, width), (same, other_width) in zip(forwards, backwards):
        assert width == other_width and np.array_equal(rows, same)


def test_epochs_and_seeds_shuffle_differently():
    batches = BucketedBatches(LENGTHS * 9, 32, [8, 16])

    def flat(number, seed):
        return [n for rows, _ in epoch(batches, number, seed) for n in rows]

    assert flat(0, 0) != flat(1, 0)
    assert flat(0, 0) != flat(0, 1)
    assert [width for _, width in epoch(batches, 0)] != [width for _, width in epoch(batches, 1)]


def test_rows_are_a_multiple():
    batches = BucketedBatches(LENGTHS, 100, [8, 16], rows_multiple=4)
    assert batches.rows == {8: 12, 16: 4}
    assert {len(rows) for rows, _ in epoch(batches, 0)} == {12, 4}


@pytest.mark.parametrize(
    ("lengths", "tokens", "buckets", "multiple", "said"),
    [
        ([], 32, [8], 1, "no examples"),
        ([1], 32, [16, 8], 1, r"buckets are \[16, 8\], expected ascending"),
        ([1], 32, [8, 8], 1, "expected ascending"),
        ([1], 15, [8, 16], 1, "batch_tokens is 15: no room for 1 rows of 16 tokens"),
        ([1], 63, [8, 16], 4, "no room for 4 rows of 16 tokens"),
    ],
)
def test_what_makes_no_batches_is_named(lengths, tokens, buckets, multiple, said):
    with pytest.raises(ValueError, match=said):
        BucketedBatches(lengths, tokens, buckets, multiple)
