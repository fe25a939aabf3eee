"""The search of T2RAG's released code, which knows a proposition by its text alone.

A repeated proposition stands in its list once for every chunk, but each copy leads to the last
chunk that states it; the walk ends as soon as k chunks are collected. Source: repository
rockcor/T2RAG, revision 72c43bd, `retrieve_and_double_check`.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from triax.extraction.verbalize import sentence
from triax.records.documents import Chunk
from triax.records.evidence import Evidence, Hit, ScoredChunk
from triax.records.triplets import Extraction, Proposition, Triplet
from triax.records.verbs import Encoder


class OriginalRetriever:
    """All propositions in order of extraction, repeats included; scores are dot products."""

    def __init__(
        self, chunks: Mapping[str, Chunk], extractions: Sequence[Extraction], encoder: Encoder
    ):
        self._chunks = chunks
        self._encoder = encoder
        self._triplets: list[Triplet] = []
        self._source: dict[str, str] = {}
        for extraction in extractions:
            for triplet in extraction.triplets:
                self._triplets.append(triplet)
                self._source[sentence(triplet)] = extraction.chunk_id
        self._texts = [sentence(triplet) for triplet in self._triplets]
        self._vectors = encoder.encode(self._texts, "passage") if self._texts else None

    def search(self, groups: Sequence[Sequence[str]], num_chunks: int) -> list[Evidence]:
        """One pool a group: the best score over its queries, then the walk down to k chunks."""
        return [self._search(group, num_chunks) for group in groups]

    def _search(self, group: Sequence[str], num_chunks: int) -> Evidence:
        if self._vectors is None or not group:
            return Evidence()
        scores = (self._vectors @ self._encoder.encode(list(group), "query").T).max(axis=1)
        hits: list[Hit] = []
        chunks: dict[str, ScoredChunk] = {}
        for row in np.argsort(-scores, kind="stable"):
            score = float(scores[row])
            if len(chunks) >= num_chunks:
                break
            if score <= 0:
                continue
            text = self._texts[row]
            chunk_id = self._source[text]
            proposition = Proposition(f"original-{row}", self._triplets[row], text, (chunk_id,))
            hits.append(Hit(proposition, score, (chunk_id,)))
            chunks.setdefault(chunk_id, ScoredChunk(self._chunks[chunk_id], score))
        return Evidence(tuple(chunks.values()), tuple(hits))


def open_original_retriever(
    chunks: Sequence[Chunk], extractions: Sequence[Extraction], encoder: Encoder
) -> OriginalRetriever:
    """The original's search over chunks and what was extracted from them."""
    return OriginalRetriever({chunk.id: chunk for chunk in chunks}, extractions, encoder)
