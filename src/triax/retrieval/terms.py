"""Scores of texts by the words that they share with a query: BM25 and TF-IDF."""

import logging
import re
from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float32

_WORD = re.compile(r"\w+")


@runtime_checkable
class TermScorer(Protocol):
    """Scores one query against all texts; 0 where no word is shared."""

    def scores(self, query: str) -> Float32[np.ndarray, "texts"]: ...


def words(text: str, stop_words: frozenset[str] = frozenset()) -> list[str]:
    """Runs of letters, digits and underscores of any script, lower-cased, in order."""
    return [word for word in _WORD.findall(text.lower()) if word not in stop_words]


def english_stop_words() -> frozenset[str]:
    """The 33 words that Lucene's English analyser leaves out, as bm25s lists them."""
    from bm25s.stopwords import STOPWORDS_EN

    return frozenset(STOPWORDS_EN)


class Bm25:
    """BM25 in Lucene's form (Robertson and Zaragoza, 2009), by bm25s (Lù, 2024)."""

    def __init__(
        self,
        texts: Sequence[str],
        k1: float = 1.2,
        b: float = 0.75,
        drops_stop_words: bool = False,
    ) -> None:
        """Indexes the texts. `k1` saturates repetition, `b` weighs the length of a text."""
        self._stop_words = english_stop_words() if drops_stop_words else frozenset()
        vocabulary: dict[str, int] = {}
        ids = [
            [vocabulary.setdefault(word, len(vocabulary)) for word in words(t, self._stop_words)]
            for t in texts
        ]
        self._num_texts = len(texts)
        self._vocabulary = vocabulary
        self._index = None
        if vocabulary:
            # Here, since bm25s imports jax where it finds it.
            import bm25s

            logging.getLogger("bm25s").setLevel(logging.WARNING)  # it logs every step
            self._index = bm25s.BM25(k1=k1, b=b, method="lucene")
            self._index.index((ids, dict(vocabulary)), show_progress=False)

    def scores(self, query: str) -> Float32[np.ndarray, "texts"]:
        """The score of every text; a word that the query repeats counts each time."""
        known = [self._vocabulary.get(word) for word in words(query, self._stop_words)]
        ids = [word for word in known if word is not None]
        if self._index is None or not ids:
            return np.zeros(self._num_texts, np.float32)
        return np.asarray(self._index.get_scores_from_ids(ids), np.float32)


class Tfidf:
    """Cosine of TF-IDF vectors of words and pairs of neighbouring words.

    idf = ln((1 + texts) / (1 + texts with the term)) + 1, counts unscaled: scikit-learn's default
    with `ngram_range=(1, 2)`, but for words of one letter, which count here.
    """

    def __init__(
        self, texts: Sequence[str], max_words: int = 2, drops_stop_words: bool = False
    ) -> None:
        """Indexes the texts by runs of 1 to `max_words` words."""
        from scipy.sparse import csr_array

        self._stop_words = english_stop_words() if drops_stop_words else frozenset()
        self._max_words = max_words
        self._vocabulary: dict[str, int] = {}
        rows, columns = [], []
        for row, text in enumerate(texts):
            for term in self._terms(text):
                rows.append(row)
                columns.append(self._vocabulary.setdefault(term, len(self._vocabulary)))
        shape = (len(texts), len(self._vocabulary))
        # Entries of the same place are summed, which counts.
        counts = csr_array((np.ones(len(rows)), (rows, columns)), shape=shape)
        frequency = np.bincount(counts.indices, minlength=shape[1])
        self._idf = np.log((1 + shape[0]) / (1 + frequency)) + 1
        counts.data *= self._idf[counts.indices]
        norms = np.sqrt(counts.power(2).sum(axis=1))
        counts.data /= np.repeat(norms, np.diff(counts.indptr))
        self._weights = counts.tocsc()

    def scores(self, query: str) -> Float32[np.ndarray, "texts"]:
        """The cosine of every text with the query."""
        known = [self._vocabulary[t] for t in self._terms(query) if t in self._vocabulary]
        if not known:
            return np.zeros(self._weights.shape[0], np.float32)
        columns, counts = np.unique(known, return_counts=True)
        weights = counts * self._idf[columns]
        weights /= np.linalg.norm(weights)
        return (self._weights[:, columns] @ weights).astype(np.float32)

    def _terms(self, text: str) -> list[str]:
        found = words(text, self._stop_words)
        return [
            " ".join(found[start : start + size])
            for size in range(1, self._max_words + 1)
            for start in range(len(found) - size + 1)
        ]
