import numpy as np
import pytest

from triax.indexing.search import power_of_two, search, slack
from triax.indexing.small import NumpySearch, default_engine
from triax.indexing.tables import Sources
from triax.indexing.walk import Walk


class Stingy:
    """Gives what it is asked for and no more, in an order of its own, and counts."""

    def __init__(self, vectors, sources):
        self.vectors, self.depths = vectors, []

    def nearest(self, groups, depth):
        self.depths.append((depth, len(groups)))
        results = []
        for group in groups:
            scores = (self.vectors @ group.T).max(axis=1)
            rows = np.argsort(-scores, kind="stable")[:depth]
            is_all = depth >= len(scores)
            results.append((rows[::-1].copy(), -np.inf if is_all else float(scores[rows[-1]])))
        return results

    def deepen(self, groups, num_chunks, depth, floor):
        return 2 * depth


def axis(*scores):
    """Rows whose dot product with (1, 0) is the score."""
    return np.array([[score, np.sqrt(1 - score**2)] for score in scores], np.float32)


QUERY = np.array([[1.0, 0.0]], np.float32)


def test_asks_for_more_until_the_missing_rows_cannot_matter():
    # Five rows of one chunk come before the row of another; only then may the walk stop.
    vectors = axis(0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2)
    sources = Sources(np.arange(9), np.array([0, 0, 0, 0, 0, 1, 2, 3], np.int32), 4)
    engine = Stingy(vectors, sources)
    found = search(vectors, sources, [QUERY, QUERY[:0], QUERY], 2, engine, depth=2)
    assert engine.depths == [(2, 2), (4, 2), (8, 2)]
    assert found[0] == found[2] and found[1] == Walk()
    assert found[0].rows == (0, 1, 2, 3, 4, 5) and found[0].chunk_rows == (0, 1)


def test_r09_all_equal_scores_are_settled_by_row():
    vectors = np.ones((6, 2), np.float32) / np.sqrt(np.float32(2))
    sources = Sources.identity(6)
    # The engine's own order among equals must not matter: all of them are fetched.
    found = search(vectors, sources, [QUERY], 3, Stingy(vectors, sources), depth=1)[0]
    assert found.rows == found.chunk_rows == (0, 1, 2)
    assert search(vectors, sources, [QUERY], 99, NumpySearch(vectors, sources))[0].rows == tuple(
        range(6)
    )
    assert search(vectors, sources, [QUERY], 0, NumpySearch(vectors, sources)) == [Walk()]


def test_rows_without_a_positive_score_need_no_deeper_search():
    vectors = axis(0.5, 0.0, 0.0, -0.5, -0.5, -0.5)
    sources = Sources.identity(6)
    engine = Stingy(vectors, sources)
    assert search(vectors, sources, [QUERY], 5, engine, depth=2)[0].rows == (0,)
    assert engine.depths == [(2, 1)]


def test_r09_an_empty_index_finds_nothing():
    vectors, sources = np.zeros((0, 2), np.float32), Sources.identity(0)
    engine = default_engine(vectors, sources)
    assert search(vectors, sources, [QUERY, QUERY], 5, engine) == [Walk(), Walk()]


@pytest.mark.parametrize(("count", "power"), [(0, 1), (1, 1), (2, 2), (3, 4), (64, 64), (65, 128)])
def test_power_of_two(count, power):
    assert power_of_two(count) == power


def test_slack_covers_the_rounding_of_float32():
    random = np.random.default_rng(0)
    vectors = random.normal(size=(2000, 384))
    vectors = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
    exact = vectors.astype(np.float64) @ vectors[0].astype(np.float64)
    assert np.abs(vectors @ vectors[0] - exact).max() < slack(vectors[:1])
