"""The order of lessons: which examples stand in the batch of a step.

It is a pure function of (seed, step), so a resumed run needs no saved iterator.
"""

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from jaxtyping import Int


class BucketedBatches:
    """Batches of examples of like length.

    Each example belongs to the smallest bucket that holds it, and a batch to one bucket, so there
    are as many shapes to compile as buckets. Each epoch shuffles the examples within their
    buckets, and the batches; every example stands once in an epoch.
    """

    def __init__(
        self,
        lengths: Sequence[int],
        batch_tokens: int,
        buckets: Sequence[int],
        rows_multiple: int = 1,
    ):
        """Takes the lengths of all examples, in tokens.

        Args:
            lengths: a longer one than the last bucket counts as that bucket (it will be cut).
            batch_tokens: rows x bucket of a batch.
            buckets: ascending widths.
            rows_multiple: the rows are a multiple of this (devices x micro-batches).

        Raises:
            ValueError: there are no examples, the buckets do not ascend, or the batch is too
                small to hold `rows_multiple` of the longest rows.
        """
        if not len(lengths):
            raise ValueError("there are no examples to make batches of")
        if list(buckets) != sorted(set(buckets)):
            raise ValueError(f"buckets are {list(buckets)}, expected ascending widths")
        self.buckets = tuple(int(bucket) for bucket in buckets)
        self.rows = {
            bucket: batch_tokens // bucket // rows_multiple * rows_multiple for bucket in buckets
        }
        if not all(self.rows.values()):
            raise ValueError(
                f"batch_tokens is {batch_tokens}: no room for {rows_multiple} rows of "
                f"{self.buckets[-1]} tokens; raise it or shorten the buckets"
            )
        place = np.searchsorted(np.asarray(self.buckets), np.asarray(lengths))
        place = np.minimum(place, len(self.buckets) - 1)
        self._members = [np.flatnonzero(place == n) for n in range(len(self.buckets))]
        self.steps_per_epoch = sum(
            -(-len(members) // self.rows[bucket])
            for members, bucket in zip(self._members, self.buckets)
        )
        self._plan = lru_cache(maxsize=2)(self._make_plan)

    def __call__(self, step: int, seed: int) -> tuple[Int[np.ndarray, " rows"], int]:
        """The numbers of the examples of this step, -1 where a last batch has no more, and the
        width of its bucket.
        """
        epoch, place = divmod(step, self.steps_per_epoch)
        return self._plan(seed, epoch)[place]

    def _make_plan(self, seed: int, epoch: int) -> list[tuple[Int[np.ndarray, " rows"], int]]:
        generator = np.random.default_rng((seed, epoch))
        batches = []
        for members, bucket in zip(self._members, self.buckets):
            shuffled = generator.permutation(members)
            rows = self.rows[bucket]
            for start in range(0, len(shuffled), rows):
                part = shuffled[start : start + rows]
                batches.append((np.pad(part, (0, rows - len(part)), constant_values=-1), bucket))
        return [batches[n] for n in generator.permutation(len(batches))]
