import math

import numpy as np
import pytest

from triax.retrieval.terms import Bm25, Tfidf, english_stop_words, words

TEXTS = ["the cat sat on the mat", "the dog", "a cat and a dog and a cat", "Ёж 猫 naïve", ""]


def bm25(query, text, k1=1.2, b=0.75):
    """Lucene's BM25, written out from Kamphuis et al. (2020), table 1."""
    texts = [t.lower().split() for t in TEXTS]
    average = sum(map(len, texts)) / len(texts)
    total = 0.0
    for term in query.split():
        containing = sum(term in t for t in texts)
        idf = math.log(1 + (len(texts) - containing + 0.5) / (containing + 0.5))
        count = texts[text].count(term)
        norm = k1 * (1 - b + b * len(texts[text]) / average)
        total += idf * count / (count + norm)
    return total


@pytest.mark.parametrize("query", ["cat", "the cat dog", "cat cat", "ёж naïve unknown"])
@pytest.mark.parametrize(("k1", "b"), [(1.2, 0.75), (0.9, 0.4)])
def test_bm25_is_the_formula(query, k1, b):
    expected = [bm25(query, row, k1, b) for row in range(len(TEXTS))]
    np.testing.assert_allclose(Bm25(TEXTS, k1, b).scores(query), expected, rtol=1e-5, atol=1e-7)


def test_tfidf_is_a_cosine_with_smoothed_idf():
    texts = ["a b", "b c", "c"]
    # Terms: a, b, c, "a b", "b c"; idf = ln(4 / (1 + df)) + 1.
    once, twice = math.log(2) + 1, math.log(4 / 3) + 1
    first = np.array([once, twice, 0, once, 0]) / math.hypot(once, twice, once)
    second = np.array([0, twice, twice, 0, once]) / math.hypot(twice, twice, once)
    third = np.array([0, 0, 1, 0, 0])
    query = np.array([once, 2 * twice, 0, once, 0]) / math.hypot(once, 2 * twice, once)
    expected = [query @ first, query @ second, query @ third]
    np.testing.assert_allclose(Tfidf(texts).scores("A b d B"), expected, rtol=1e-6)


@pytest.mark.parametrize("scorer", [Bm25, Tfidf])
@pytest.mark.parametrize("texts", [[], [""], ["?!", "..."]])
def test_r09_texts_without_words_score_nothing(scorer, texts):
    assert scorer(texts).scores("cat").tolist() == [0.0] * len(texts)


@pytest.mark.parametrize("scorer", [Bm25, Tfidf])
def test_unknown_words_and_stop_words_score_nothing(scorer):
    assert not scorer(TEXTS).scores("zebra").any() and not scorer(TEXTS).scores("").any()
    assert scorer(TEXTS).scores("the").any()
    assert not scorer(TEXTS, drops_stop_words=True).scores("the and on").any()


def test_words_of_any_script():
    assert words("Ёж-猫, naïve C3PO!") == ["ёж", "猫", "naïve", "c3po"]
    assert words("The cat", english_stop_words()) == ["cat"]
    assert len(english_stop_words()) == 33
