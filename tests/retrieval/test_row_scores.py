import numpy as np

from triax.indexing.hashing import HashingEncoder
from triax.retrieval.row_scores import QueryVectors, RowScores, VectorScores, WordScores
from triax.retrieval.terms import Bm25

GROUPS = [["Ada in London", "Paris"], [], ["Paris", "Paris"]]
TEXTS = ["Ada met Babbage", "Paris", "London"]


def test_vectors_give_the_best_product_of_a_group():
    encoder = HashingEncoder(64)
    rows = encoder.encode(TEXTS)
    scores = VectorScores(rows, QueryVectors(encoder))
    assert isinstance(scores, RowScores)
    # One of three words shared by each of two texts: 1 / sqrt(3 * 3) and 1 / sqrt(3).
    expected = [[1 / 3, 1, 1 / np.sqrt(3)], [0, 0, 0], [0, 1, 0]]
    np.testing.assert_allclose(scores.scores(GROUPS), expected, atol=1e-6)
    assert scores.scores([]).shape == (0, 3)
    assert VectorScores(rows[:0], QueryVectors(encoder)).scores(GROUPS).shape == (3, 0)


def test_two_tables_embed_the_queries_once():
    class Counting(HashingEncoder):
        calls = 0

        def encode(self, texts, role="passage"):
            self.calls += 1
            assert role == "query"
            return super().encode(texts, role)

    encoder = Counting(64)
    queries = QueryVectors(encoder)
    rows = HashingEncoder(64).encode(TEXTS)
    for part in (rows, rows[:2]):
        VectorScores(part, queries).scores(GROUPS)
    assert encoder.calls == 1
    VectorScores(rows, queries).scores(GROUPS[:1])
    assert encoder.calls == 2


def test_words_give_the_best_score_of_a_group():
    scorer = Bm25(TEXTS)
    scores = WordScores(scorer, 3)
    assert isinstance(scores, RowScores)
    one, two = scorer.scores("Ada in London"), scorer.scores("Paris")
    expected = [np.maximum(one, two), np.zeros(3), two]
    np.testing.assert_array_equal(scores.scores(GROUPS), expected)
