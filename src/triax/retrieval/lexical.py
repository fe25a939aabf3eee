"""Triplet retrieval by words: T2RAG's walk with BM25 or TF-IDF in place of an encoder."""

from collections.abc import Sequence
from typing import Literal

import numpy as np

from triax.indexing.tables import Sources, TripletTables
from triax.indexing.walk import Walk, walk
from triax.records.evidence import Evidence
from triax.retrieval.found import triplet_evidence
from triax.retrieval.terms import Bm25, TermScorer, Tfidf


class LexicalTripletRetriever:
    """Walks over propositions by the words that they share with the queries."""

    def __init__(
        self,
        tables: TripletTables,
        scorer: Literal["bm25", "tfidf"] = "bm25",
        drops_stop_words: bool = False,
    ) -> None:
        """Takes `index.tables`, or `TripletTables.of(chunks, propositions)` without any index."""
        texts = tables.propositions["text"].to_pylist()
        self._tables = tables
        self._scorer: TermScorer = (
            Bm25(texts, drops_stop_words=drops_stop_words)
            if scorer == "bm25"
            else Tfidf(texts, drops_stop_words=drops_stop_words)
        )

    def search(self, groups: Sequence[Sequence[str]], num_chunks: int) -> list[Evidence]:
        """As `AdaptiveRetriever.search`, with lexical scores."""
        walks = lexical_walks(self._scorer, self._tables.sources, groups, num_chunks)
        return [triplet_evidence(self._tables, found) for found in walks]


def lexical_walks(
    scorer: TermScorer, sources: Sources, groups: Sequence[Sequence[str]], num_chunks: int
) -> list[Walk]:
    """The walk of each group over the texts that share a word with it; a score is the best."""
    walks = []
    for group in groups:
        scores = np.zeros(len(sources.offsets) - 1, np.float32)
        for query in dict.fromkeys(group):
            np.maximum(scores, scorer.scores(query), out=scores)
        rows = np.flatnonzero(scores).astype(np.int64)
        walks.append(walk(rows, scores[rows], sources, num_chunks))
    return walks
