"""Padded batches of few shapes: one compilation a shape, bounded memory, little padding (R8)."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Int32, Integer

# Four tokens or about a third apart: most propositions have 8 to 24 tokens, and closer steps gave
# them a third more speed than powers of two; above, each length costs a compilation.
LENGTHS = (8, 12, 16, 20, 24, 32, 40, 48, 64, 80, 96, 128, 160, 192, 256, 320, 384, 512)


@dataclass(frozen=True, slots=True)
class Batch:
    """Some rows of a list, to be padded to `rows` x `length`.

    `positions` are the places of the real rows in the list, at most `rows` of them.
    """

    positions: tuple[int, ...]
    rows: int
    length: int


def bucket_lengths(max_length: int, lengths: Sequence[int] = LENGTHS) -> tuple[int, ...]:
    """The lengths below `max_length`, and `max_length` itself as the last one."""
    if max_length < 1:
        raise ValueError(f"max_length is {max_length}, expected at least 1 token")
    return (*(length for length in sorted(lengths) if length < max_length), max_length)


def row_counts(length: int, batch_tokens: int, row_multiple: int = 1) -> tuple[int, ...]:
    """The numbers of rows that batches of one length may have, largest first.

    The largest fills the token budget; each next is a quarter, down to 1; all are times
    `row_multiple` (the number of devices), and so is the budget. A row longer than the budget is a
    batch of its own.
    """
    if batch_tokens < 1 or row_multiple < 1:
        raise ValueError(f"{batch_tokens=} and {row_multiple=}, expected at least 1")
    rows = max(1, batch_tokens // length)
    counts = []
    while rows >= 1:
        counts.append(rows * row_multiple)
        rows //= 4
    if counts[-1] > row_multiple:
        counts.append(row_multiple)
    return tuple(counts)


def plan_batches(
    lengths: Sequence[int] | Integer[np.ndarray, " rows"],
    batch_tokens: int,
    buckets: Sequence[int] = LENGTHS,
    row_multiple: int = 1,
) -> list[Batch]:
    """Groups rows of like length; every row is in one batch.

    Rows go longest first, so that the largest need of memory comes at once. The rest of a bucket
    that does not fill a batch is cut into smaller row counts (see `row_counts`), or padded where
    that adds at most a third.

    Args:
        lengths: tokens of each row.
        batch_tokens: bound on rows x length of a batch, for each of `row_multiple` devices.
        buckets: the lengths to pad to, rising.
        row_multiple: what the number of rows must be a multiple of.

    Raises:
        ValueError: a row is longer than the last bucket.
    """
    lengths = np.asarray(lengths, np.int64)
    if lengths.size and lengths.max() > buckets[-1]:
        place = int(lengths.argmax())
        raise ValueError(
            f"row {place} has {lengths[place]} tokens, the longest bucket {buckets[-1]}; "
            "truncate the row or add a bucket"
        )
    bucket_of = np.searchsorted(np.asarray(buckets), lengths)
    order = np.argsort(-lengths, kind="stable")
    batches = []
    for number in range(len(buckets) - 1, -1, -1):
        rows = order[bucket_of[order] == number].tolist()
        counts = row_counts(buckets[number], batch_tokens, row_multiple)
        while rows:
            count = _next_count(len(rows), counts)
            batches.append(Batch(tuple(rows[:count]), count, buckets[number]))
            rows = rows[count:]
    return batches


def _next_count(left: int, counts: Sequence[int]) -> int:
    """The largest count that `left` rows fill to three quarters, else the smallest count."""
    return next((count for count in counts if 4 * left >= 3 * count), counts[-1])


def pad_batch(
    batch: Batch, ids: Sequence[Sequence[int]], pad_id: int
) -> tuple[Int32[np.ndarray, "rows length"], Bool[np.ndarray, "rows length"]]:
    """The token ids of a batch, padded on the right, and the mask that is True at real tokens."""
    padded = np.full((batch.rows, batch.length), pad_id, np.int32)
    mask = np.zeros((batch.rows, batch.length), bool)
    for row, position in enumerate(batch.positions):
        tokens = ids[position]
        padded[row, : len(tokens)] = tokens
        mask[row, : len(tokens)] = True
    return padded, mask
