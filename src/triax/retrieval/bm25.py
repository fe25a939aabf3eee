"""BM25 over chunks: the baseline without any encoder."""

from collections.abc import Iterable, Sequence

from triax.indexing.tables import Sources, TripletTables
from triax.records.documents import Chunk
from triax.records.evidence import Evidence
from triax.retrieval.found import chunk_evidence
from triax.retrieval.lexical import lexical_walks
from triax.retrieval.terms import Bm25


class BM25Retriever:
    """Ranks chunks by BM25 of their title and text."""

    def __init__(
        self,
        chunks: Iterable[Chunk],
        k1: float = 1.2,
        b: float = 0.75,
        drops_stop_words: bool = False,
    ) -> None:
        """Indexes the chunks in memory. 1.2 and 0.75 are Lucene's defaults."""
        self._tables = TripletTables.of(chunks, ())
        passages = [chunk.passage for chunk in self._tables.all_chunks()]
        self._scorer = Bm25(passages, k1, b, drops_stop_words)
        self._sources = Sources.identity(len(passages))

    def search(self, groups: Sequence[Sequence[str]], num_chunks: int) -> list[Evidence]:
        """The `num_chunks` best chunks of each group that share a word with it, ties by chunk id.

        A chunk's score is its best over the group's queries.
        """
        walks = lexical_walks(self._scorer, self._sources, groups, num_chunks)
        return [chunk_evidence(self._tables, walk) for walk in walks]
