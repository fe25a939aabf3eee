import numpy as np

from triax.retrieval.seeds import best_rows, min_max, seed_phrases


def floats(*values):
    return np.array(values, np.float32)


def test_min_max_by_hand():
    found = min_max(np.array([[1, 3, 2], [-1, 0, 1]], np.float32))
    assert found.tolist() == [[0, 1, 0.5], [0, 0.5, 1]]


def test_r09_equal_scores_have_no_range():
    found = min_max(np.array([[2, 2], [0, 0], [-1, -1]], np.float32))
    assert found.tolist() == [[1, 1], [0, 0], [0, 0]]
    assert min_max(floats([0.4])).tolist() == [[1]]
    assert min_max(np.zeros((2, 0), np.float32)).shape == (2, 0)


def test_r18_best_rows_are_in_order_and_equal_ones_by_row():
    scores = floats(0.5, 1, 0, 0.5, 1, 0.5, 0.9)
    assert best_rows(scores, 5).tolist() == [1, 4, 6, 0, 3]
    # What rounding set apart counts as equal.
    assert best_rows(floats(0.5, 0.5 + 1e-7, 0.2), 1).tolist() == [0]
    assert best_rows(scores, 99).tolist() == [1, 4, 6, 0, 3, 5]
    assert best_rows(scores, 0).tolist() == best_rows(floats(), 3).tolist() == []


# Phrases 0 ada, 1 london, 2 paris. Triplets: (ada, london), (ada, paris), (london, london), (-, 2).
SUBJECTS = np.array([0, 0, 1, -1], np.int32)
OBJECTS = np.array([1, 2, 1, 2], np.int32)
COUNTS = np.array([4, 2, 1], np.int32)


def test_seeds_by_hand():
    """Ada: mean(1, .5) / 4 = .1875; London: mean(1, .2, .2) / 2 = .2333; Paris: mean(.5, .1)."""
    rows, scores = [0, 1, 2, 3], floats(1, 0.5, 0.2, 0.1)
    phrases, weights = seed_phrases(rows, scores, SUBJECTS, OBJECTS, COUNTS, 5)
    assert phrases.tolist() == [2, 1, 0]
    np.testing.assert_allclose(weights, [0.3, 1.4 / 6, 0.1875], rtol=1e-6)
    phrases, weights = seed_phrases(rows, scores, SUBJECTS, OBJECTS, COUNTS, 2, divides=False)
    assert phrases.tolist() == [0, 1]
    np.testing.assert_allclose(weights, [0.75, 1.4 / 3], rtol=1e-6)


def test_r09_no_link_and_links_of_score_0_give_no_seed():
    for rows, scores in (([], floats()), ([0], floats(0))):
        phrases, weights = seed_phrases(rows, scores, SUBJECTS, OBJECTS, COUNTS, 5)
        assert phrases.shape == weights.shape == (0,)
