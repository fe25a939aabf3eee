"""Scores of all rows of a table for groups of queries: by vectors or by words."""

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float, Float32

from triax.records.verbs import Encoder
from triax.retrieval.adaptive import encode_groups
from triax.retrieval.terms import TermScorer

Groups = Sequence[Sequence[str]]


@runtime_checkable
class RowScores(Protocol):
    """Scores every row for every group: its best over the queries of the group.

    A group without a query scores 0 everywhere.
    """

    def scores(self, groups: Groups) -> Float32[np.ndarray, "groups rows"]: ...


class QueryVectors:
    """Embeds the queries of groups; the last ones are kept, since several tables ask for them."""

    def __init__(self, encoder: Encoder) -> None:
        """Takes what embeds queries."""
        self._encoder = encoder
        self._last: tuple[tuple[str, ...], ...] | None = None
        self._vectors: list[np.ndarray] = []

    def __call__(self, groups: Groups) -> list[Float32[np.ndarray, "_ dimension"]]:
        """As `encode_groups`."""
        asked = tuple(tuple(group) for group in groups)
        if asked != self._last:
            self._vectors = encode_groups(self._encoder, groups)
            self._last = asked
        return self._vectors


class VectorScores:
    """Dot products with the vectors of an index."""

    def __init__(self, vectors: Float[np.ndarray, "rows dimension"], queries: QueryVectors):
        """Keeps the rows in float32."""
        self._vectors = np.asarray(vectors, np.float32)
        self._queries = queries

    def scores(self, groups: Groups) -> Float32[np.ndarray, "groups rows"]:
        """One product for all groups; holds queries x rows floats."""
        vectors = self._queries(groups)
        found = np.zeros((len(groups), len(self._vectors)), np.float32)
        asked = [number for number, group in enumerate(vectors) if len(group)]
        if asked and len(self._vectors):
            products = np.concatenate([vectors[number] for number in asked]) @ self._vectors.T
            starts = np.cumsum([0, *(len(vectors[number]) for number in asked[:-1])])
            found[asked] = np.maximum.reduceat(products, starts, axis=0)
        return found


class WordScores:
    """BM25 or TF-IDF over the texts of the rows."""

    def __init__(self, scorer: TermScorer, num_rows: int) -> None:
        """Takes an index of the rows' texts."""
        self._scorer = scorer
        self._num_rows = num_rows

    def scores(self, groups: Groups) -> Float32[np.ndarray, "groups rows"]:
        """One query at a time."""
        found = np.zeros((len(groups), self._num_rows), np.float32)
        for row, group in zip(found, groups):
            for query in dict.fromkeys(group):
                np.maximum(row, self._scorer.scores(query), out=row)
        return found
