"""KET-RAG's keyword channel: from the question to words, from words to chunks.

A word's vector is the mean of the vectors of the sentences that it stands in; the words nearest to
a question lead to their chunks, which are ranked by their own vectors and packed into a budget.
Source: KET-RAG (Huang et al., 2025, section 4.2) and the code released with it.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float, Float32, Int64

from triax.extraction.sentences import split_sentences
from triax.indexing.entity_graph import open_text_vectors
from triax.indexing.store import TripletIndex
from triax.records.verbs import Encoder
from triax.retrieval.packing import pack
from triax.retrieval.skeleton import word_table

if TYPE_CHECKING:
    from scipy.sparse import csr_array


class KeywordChannel:
    """Ranks the chunks that the words nearest to a question stand in."""

    def __init__(
        self,
        has: "csr_array",
        word_vectors: Float[np.ndarray, "words dimension"],
        chunk_vectors: Float[np.ndarray, "chunks dimension"],
        chunk_tokens: Sequence[int],
        num_words: int = 1000,
    ) -> None:
        """Takes what was made of an index.

        Args:
            has: [chunks, words], 1 where the chunk has the word.
            word_vectors: one row a word.
            chunk_vectors: one row a chunk, of length 1.
            chunk_tokens: the size of each chunk.
            num_words: words that a question leads to.
        """
        self._chunks_of = has.T.tocsr()
        self._words = np.asarray(word_vectors, np.float32)
        self._vectors = np.asarray(chunk_vectors, np.float32)
        self._tokens = np.asarray(chunk_tokens, np.int64)
        self._num_words = num_words

    def ranked(
        self, query: Float32[np.ndarray, "dimension"], max_tokens: int
    ) -> list[tuple[int, float]]:
        """Chunk rows and scores, best first, of at most `max_tokens` together.

        Words are walked in order of nearness, and of each word its chunks likewise, until chunks
        of twice the budget are gathered; these are ranked by their own nearness and packed up to
        the first that does not fit. Equal ones are in order of rows.
        """
        scores = self._vectors @ query
        gathered: dict[int, None] = {}
        size = 0
        for word in _order(self._words @ query)[: self._num_words].tolist():
            if size >= 2 * max_tokens:
                break
            start, end = self._chunks_of.indptr[word : word + 2]
            rows = np.sort(self._chunks_of.indices[start:end])
            for row in rows[_order(scores[rows])].tolist():
                if row not in gathered and size < 2 * max_tokens:
                    gathered[row] = None
                    size += int(self._tokens[row])
        rows = np.array(sorted(gathered), np.int64)
        rows = rows[_order(scores[rows])]
        kept = rows[pack(self._tokens[rows].tolist(), max_tokens)]
        return [(int(row), float(scores[row])) for row in kept]


def word_vectors(
    index: TripletIndex, encoder: Encoder, vocabulary: Sequence[str], texts: Sequence[str]
) -> Float32[np.ndarray, "words dimension"]:
    """The mean vector of each word's sentences; these are embedded the first time.

    Args:
        index: beside which the sentences' vectors are kept.
        encoder: the one of the index.
        vocabulary: sorted words of the texts.
        texts: of the chunks, in row order.
    """
    sentences = list(dict.fromkeys(one for text in texts for one in split_sentences(text)))
    vectors = open_text_vectors(index, encoder, "sentences", sentences)
    column_of = {word: column for column, word in enumerate(vocabulary)}
    known, has = word_table(sentences)
    sums = np.asarray(has.T @ np.asarray(vectors, np.float32), np.float32)
    counts = np.asarray(has.sum(axis=0)).reshape(-1, 1)
    found = np.zeros((len(vocabulary), encoder.dimension), np.float32)
    places = [n for n, word in enumerate(known) if word in column_of]
    found[[column_of[known[n]] for n in places]] = (sums / np.maximum(counts, 1))[places]
    return found


def _order(scores: Float32[np.ndarray, "rows"]) -> Int64[np.ndarray, "rows"]:
    """Places by falling score, equal ones (but for rounding) in their order."""
    return np.argsort(-np.round(scores, 6), kind="stable")
