import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from triax.retrieval.skeleton import centrality, neighbour_pairs, skeleton_rows, word_table

TEXTS = ["The cat sat", "a cat and a dog", "dog dog dog", "unrelated words"]


def unit(rows):
    rows = np.asarray(rows, np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def test_words_stand_once_and_without_stop_words():
    vocabulary, has = word_table(TEXTS)
    assert vocabulary == ("cat", "dog", "sat", "unrelated", "words")
    assert has.toarray().tolist() == [
        [1, 0, 1, 0, 0],
        [1, 1, 0, 0, 0],
        [0, 1, 0, 0, 0],
        [0, 0, 0, 1, 1],
    ]


def test_neighbours_by_words_and_by_vectors():
    """By words: 0-1, 1-0 (before 2, which shares as many), 2-1. By vectors: 0-3, 1-2, 2-1, 3-0."""
    _, has = word_table(TEXTS)
    vectors = unit([[1, 0], [0, 1], [0.1, 1], [1, 0.1]])
    assert neighbour_pairs(has, vectors, 1).tolist() == [[0, 0, 1], [1, 3, 2]]


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 12), st.integers(0, 5))
def test_centrality_is_the_pagerank_of_networkx(count, seed):
    rng = np.random.default_rng(seed)
    graph = nx.gnp_random_graph(count, 0.3, seed=seed)
    pairs = np.array(sorted(tuple(sorted(e)) for e in graph.edges()), np.int64).reshape(-1, 2).T
    wanted = nx.pagerank(graph, alpha=0.85, tol=1e-10, max_iter=500)
    found = centrality(rng.permutation(pairs.T).T, count)
    np.testing.assert_allclose(found, [wanted[n] for n in range(count)], atol=1e-5)


def test_the_most_central_chunks_are_kept_equal_ones_by_row():
    """A star around row 2 by words, and one around row 0 by vectors that have nothing in common.

    Rows 0 and 2 have the other four each as neighbours, so they tie, and the first is kept.
    """
    texts = ["a1 hub0", "a2 hub1", "hub0 hub1 hub3 hub4", "a3 hub3", "a4 hub4"]
    _, has = word_table(texts)
    star = np.eye(5, dtype=np.float32)
    assert skeleton_rows(has, star, share=0.2).tolist() == [0]
    assert skeleton_rows(has, star, share=0.4).tolist() == [0, 2]
    assert skeleton_rows(has, star, share=1.0).tolist() == [0, 1, 2, 3, 4]
    assert len(skeleton_rows(has, star, share=0.5)) == 3


def test_r09_small_and_empty_corpora():
    for texts, wanted in ((["one"], [0]), (["same", "same"], [0]), ([], [])):
        _, has = word_table(texts)
        vectors = np.ones((len(texts), 1), np.float32)
        assert skeleton_rows(has, vectors, share=0.5).tolist() == wanted


def test_a_share_out_of_range_is_refused():
    _, has = word_table(TEXTS)
    with pytest.raises(ValueError, match="share is 0.0, expected more than 0"):
        skeleton_rows(has, np.ones((4, 1), np.float32), share=0.0)
