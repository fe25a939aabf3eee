"""KET-RAG's skeleton: the few chunks that are worth reading closely.

Chunks are joined to those that share most words with them and to those with the nearest vectors;
PageRank over that graph ranks them. Source: KET-RAG (Huang et al., 2025, section 4.1) and the
code released with it, which counts shared words by a loop over all pairs.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float, Float32, Int64

from triax.retrieval.pagerank import PageRank
from triax.retrieval.terms import english_stop_words, words

if TYPE_CHECKING:
    from scipy.sparse import csr_array

_BLOCK = 512  # rows that are compared with all others at once


def word_table(texts: Sequence[str]) -> tuple[tuple[str, ...], "csr_array"]:
    """The words of texts, sorted, without stop words, and [texts, words], 1 where one has it."""
    from scipy.sparse import csr_array

    stop = english_stop_words()
    found = [sorted(set(words(text, stop))) for text in texts]
    vocabulary = tuple(sorted({word for one in found for word in one}))
    column_of = {word: column for column, word in enumerate(vocabulary)}
    columns = np.array([column_of[word] for one in found for word in one], np.int64)
    starts = np.cumsum([0, *(len(one) for one in found)])
    ones = np.ones(len(columns), np.float32)
    return vocabulary, csr_array((ones, columns, starts), shape=(len(texts), len(vocabulary)))


def neighbour_pairs(
    has: "csr_array", vectors: Float[np.ndarray, "chunks dimension"], num_neighbours: int
) -> Int64[np.ndarray, "2 pairs"]:
    """Each chunk with its nearest others, `num_neighbours` by shared words and as many by cosine.

    Equal ones are in order of rows; what shares no word is no neighbour by words. A pair stands
    once, the smaller row first. Holds blocks of chunks, never all pairs (R11).
    """
    count = has.shape[0]
    found: list[np.ndarray] = [np.zeros((2, 0), np.int64)]
    for start in range(0, count, _BLOCK):
        rows = np.arange(start, min(start + _BLOCK, count))
        near = np.asarray(vectors[rows], np.float32) @ np.asarray(vectors, np.float32).T
        for scores, floor in (((has[rows] @ has.T).toarray(), 0.0), (near, -np.inf)):
            scores[np.arange(len(rows)), rows] = -np.inf
            # Rounding in a product decides no tie (R18).
            best = np.argsort(-np.round(scores, 5), axis=1, kind="stable")[:, :num_neighbours]
            kept = np.take_along_axis(scores, best, axis=1) > floor
            pairs = np.stack([np.repeat(rows, best.shape[1]), best.reshape(-1)])
            found.append(pairs[:, kept.reshape(-1)])
    return np.unique(np.sort(np.concatenate(found, axis=1), axis=0), axis=1)


def centrality(
    pairs: Int64[np.ndarray, "2 pairs"], num_chunks: int, damping: float = 0.85
) -> Float32[np.ndarray, "chunks"]:
    """PageRank of the chunks over the unweighted graph of these pairs."""
    if not num_chunks:
        return np.zeros(0, np.float32)
    sources, targets = np.concatenate([pairs, pairs[::-1]], axis=1)
    ranks = PageRank(sources, targets, np.ones(len(sources), np.float32), num_chunks)
    return ranks(np.ones((1, num_chunks), np.float32), damping)[0]


def skeleton_rows(
    has: "csr_array",
    vectors: Float[np.ndarray, "chunks dimension"],
    share: float = 0.8,
    num_neighbours: int = 1,
    damping: float = 0.85,
) -> Int64[np.ndarray, "kept"]:
    """The rows of the most central chunks, ascending.

    Args:
        has: [chunks, words], from `word_table`.
        vectors: of the chunks, of length 1.
        share: of the chunks that are kept, rounded up; in (0, 1].
        num_neighbours: as for `neighbour_pairs`.
        damping: of PageRank.

    Raises:
        ValueError: the share is not in (0, 1].
    """
    if not 0 < share <= 1:
        raise ValueError(f"share is {share}, expected more than 0 and at most 1")
    count = has.shape[0]
    ranks = centrality(neighbour_pairs(has, vectors, num_neighbours), count, damping)
    order = np.lexsort((np.arange(count), -np.round(ranks * max(count, 1), 4)))
    return np.sort(order[: int(np.ceil(share * count))]).astype(np.int64)
