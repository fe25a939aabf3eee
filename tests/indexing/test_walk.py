import numpy as np
import pytest

from triax.indexing.tables import Sources
from triax.indexing.walk import Walk, exact_scores, walk


def sources(*lists):
    offsets = np.cumsum([0, *map(len, lists)], dtype=np.int64)
    flat = np.array([chunk for chunks in lists for chunk in chunks], np.int32)
    return Sources(offsets, flat, 1 + max(flat.tolist(), default=-1))


def take(scores, num_chunks, *lists, floor=0.0):
    rows = np.arange(len(scores), dtype=np.int64)
    return walk(rows, np.array(scores, np.float32), sources(*lists), num_chunks, floor)


def test_stops_after_the_proposition_that_opens_the_last_chunk():
    found = take([0.5, 1.0, 0.75, 0.25], 2, [1], [0], [0], [2])
    assert found == Walk((1, 2, 0), (1.0, 0.75, 0.5), (0, 1), (1.0, 0.5))


def test_equal_scores_go_by_row_and_not_by_place():
    rows = np.array([2, 0, 1], np.int64)
    found = walk(rows, np.ones(3, np.float32), sources([0], [1], [2]), 2)
    assert found.rows == (0, 1) and found.chunk_rows == (0, 1)


def test_scores_not_above_the_floor_are_skipped():
    assert take([0.0, -1.0, 0.5], 3, [0], [1], [2]).rows == (2,)
    assert take([0.0, -1.0, 0.5], 3, [0], [1], [2], floor=-np.inf).chunk_rows == (2, 0, 1)


def test_r27_all_sources_are_reached_in_order_and_cut_at_the_limit():
    found = take([0.5, 1.0], 3, [0, 1, 3], [2])
    assert found.chunk_rows == (2, 0, 1) and found.rows == (1, 0)
    assert found.chunk_scores == (1.0, 0.5, 0.5)


@pytest.mark.parametrize(("scores", "num_chunks"), [([], 3), ([1.0], 0)])
def test_r09_nothing_to_find(scores, num_chunks):
    assert take(scores, num_chunks, *[[0]] * len(scores)) == Walk()


def test_exact_scores_are_the_best_over_the_queries_and_equal_for_equal_vectors():
    random = np.random.default_rng(0)
    vectors = np.repeat(random.normal(size=(7, 48)).astype(np.float32), 9, axis=0)
    queries = random.normal(size=(3, 48)).astype(np.float32)
    scores = exact_scores(vectors, queries)
    np.testing.assert_allclose(scores, (vectors @ queries.T).max(axis=1), rtol=1e-5, atol=1e-6)
    assert all(len(set(part.tolist())) == 1 for part in scores.reshape(7, 9))
