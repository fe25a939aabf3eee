"""The phrases of a graph that a question names: where a walk starts without any model.

The three rules of the graph walk (Zarinkia, Srinivasan, Thomo, "The reasoning bottleneck", 2026,
and the code released with it), over all phrases and many questions at once.
"""

from collections.abc import Iterable, Sequence

import numpy as np
from jaxtyping import Bool

from triax.records.text import normalise
from triax.retrieval.terms import words

# Words of questions that lists of stop words lack.
_OF_QUESTIONS = frozenset("also called could known part whose would".split())


def content_words(text: str) -> set[str]:
    """The words of more than two letters that carry meaning in English."""
    return {word for word in words(normalise(text), _stop_words()) if len(word) > 2}


class NamedPhrases:
    """Finds the phrases that a question names."""

    def __init__(self, phrases: Sequence[str], min_letters: int = 5) -> None:
        """Indexes the words of the phrases.

        Args:
            phrases: normal forms, as a graph has them.
            min_letters: of a word that names a phrase by itself.
        """
        from scipy.sparse import csr_array

        self._rows_of: dict[tuple[str, ...], list[int]] = {}
        self._vocabulary: dict[str, int] = {}
        rows, columns = [], []
        stop_words = _stop_words()
        for row, phrase in enumerate(phrases):
            said = tuple(words(phrase))
            if any(word not in stop_words for word in said):
                self._rows_of.setdefault(said, []).append(row)
            for word in sorted(content_words(phrase)):
                rows.append(row)
                columns.append(self._vocabulary.setdefault(word, len(self._vocabulary)))
        shape = (len(phrases), len(self._vocabulary))
        self._words = csr_array((np.ones(len(rows), np.int32), (rows, columns)), shape=shape)
        self._num_words = np.bincount(np.array(rows, int), minlength=len(phrases)).reshape(-1, 1)
        self._is_long = np.array([len(word) >= min_letters for word in self._vocabulary], bool)
        self._longest = max(map(len, self._rows_of), default=0)

    def find(self, groups: Sequence[Sequence[str]]) -> Bool[np.ndarray, "phrases groups"]:
        """Which phrases each group of texts names.

        A phrase is named where its words stand in a text, one after the other; or where it has at
        least two content words and the group has them all; or where it shares a content word of at
        least `min_letters` letters. A phrase of stop words alone is never named.
        """
        asked = np.zeros((len(self._vocabulary), len(groups)), np.int32)
        for column, group in enumerate(groups):
            said = {word for text in group for word in content_words(text)}
            asked[[self._vocabulary[word] for word in said if word in self._vocabulary], column] = 1
        shared = self._words @ asked
        named = (shared == self._num_words) & (self._num_words >= 2)
        named |= (self._words[:, self._is_long] @ asked[self._is_long]) > 0
        for column, group in enumerate(groups):
            for run in self._runs(group):
                named[self._rows_of.get(run, []), column] = True
        return named

    def _runs(self, group: Sequence[str]) -> Iterable[tuple[str, ...]]:
        """All runs of words, up to the length of the longest phrase."""
        for text in group:
            said = words(normalise(text))
            for start in range(len(said)):
                for end in range(start + 1, min(len(said), start + self._longest) + 1):
                    yield tuple(said[start:end])


def _stop_words() -> frozenset[str]:
    from bm25s.stopwords import STOPWORDS_EN_PLUS

    return _OF_QUESTIONS | frozenset(STOPWORDS_EN_PLUS)
