"""KET-RAG: a graph of the chunks that matter most, and a cheap net of keywords over all of them.

Source: KET-RAG (Huang et al., 2025) and the code released with it. Half of a budget of tokens goes
to a local search (as GraphRAG's, without reports) over the triplets of the skeleton's chunks alone,
half to chunks that keywords lead to. What the method saves is that a language model reads the
skeleton only; here all systems share one extraction, so what lies outside is left unused.
"""

from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Int64

from triax.indexing.entity_graph import build_entity_graph, entity_texts, open_text_vectors
from triax.indexing.reports import CommunityReports
from triax.indexing.store import TripletIndex, check_encoder
from triax.indexing.tables import TripletTables
from triax.records.evidence import Evidence, ScoredChunk
from triax.records.verbs import Encoder, TokenCounter
from triax.retrieval.adaptive import encode_groups
from triax.retrieval.fusion import fuse
from triax.retrieval.graphrag_local import LocalBudget, LocalSearch
from triax.retrieval.keyword_channel import KeywordChannel, word_vectors
from triax.retrieval.row_scores import Groups, QueryVectors, VectorScores
from triax.retrieval.skeleton import skeleton_rows, word_table


@dataclass(frozen=True, slots=True)
class KetBudget:
    """The numbers of KET-RAG, as its released code has them.

    max_tokens: of all that is shown.
    skeleton_share: of the tokens that goes to the skeleton (theta).
    num_words: words that a question leads to.
    num_entities, relations_per_entity: of the local search over the skeleton.
    chunk_share: of the skeleton's tokens that goes to its chunks; the rest is for relations.
    """

    max_tokens: int = 12000
    skeleton_share: float = 0.5
    num_words: int = 1000
    num_entities: int = 10
    relations_per_entity: int = 10
    chunk_share: float = 0.5

    def __post_init__(self) -> None:
        if not (0 <= self.skeleton_share <= 1 and 0 <= self.chunk_share <= 1):
            raise ValueError(
                f"skeleton_share is {self.skeleton_share} and chunk_share {self.chunk_share}, "
                "expected both in [0, 1]"
            )

    @property
    def local(self) -> LocalBudget:
        """The budget of the local search."""
        tokens = round(self.max_tokens * self.skeleton_share)
        chunks = round(tokens * self.chunk_share)
        return LocalBudget(
            num_entities=self.num_entities,
            max_report_tokens=0,
            max_chunk_tokens=chunks,
            max_relation_tokens=tokens - chunks,
            relations_per_entity=self.relations_per_entity,
        )


class KetRetriever:
    """Chunks of both channels, fused by rank; the hits are the skeleton's relations."""

    def __init__(
        self,
        tables: TripletTables,
        encoder: Encoder,
        local: LocalSearch,
        keywords: KeywordChannel,
        budget: KetBudget = KetBudget(),
    ) -> None:
        """Takes both channels and the tables of the whole index."""
        self._tables, self._encoder = tables, encoder
        self._local, self._keywords, self._budget = local, keywords, budget

    def search(self, groups: Groups, num_chunks: int) -> list[Evidence]:
        """At most `num_chunks` chunks a group; an empty group finds nothing."""
        # Either channel may lack what the other puts first.
        skeletons = self._local.search(groups, self._tables.chunks.num_rows)
        queries = encode_groups(self._encoder, [[" ".join(group)] for group in groups])
        tokens = round(self._budget.max_tokens * (1 - self._budget.skeleton_share))
        found = []
        for group, query, skeleton in zip(groups, queries, skeletons, strict=True):
            if not group:
                found.append(Evidence())
                continue
            led = [
                ScoredChunk(self._tables.chunk(row), score)
                for row, score in self._keywords.ranked(query[0], tokens)
            ]
            chunks = fuse([skeleton.chunks, led])[: max(0, num_chunks)]
            entered = {one.chunk.id for one in chunks}
            hits = tuple(
                replace(hit, chunk_ids=tuple(c for c in hit.proposition.chunk_ids if c in entered))
                for hit in skeleton.hits
            )
            found.append(Evidence(chunks, hits))
        return found


def open_ketrag(
    index: TripletIndex,
    encoder: Encoder,
    counter: TokenCounter,
    share: float = 0.8,
    num_neighbours: int = 1,
    **budget: int | float,
) -> KetRetriever:
    """KET-RAG over an index; descriptions and sentences are embedded the first time.

    Args:
        index: with chunk vectors.
        encoder: the one of the index.
        counter: counts what is packed.
        share: of the chunks that the skeleton keeps.
        num_neighbours: of each chunk by words, and by vectors, in the graph that ranks them.
        budget: the fields of `KetBudget`.

    Raises:
        ValueError: the index has no chunk vectors, or was built with another encoder.
    """
    check_encoder(index, encoder, probes=False)
    if index.chunk_vectors is None:
        raise ValueError(
            f"{index.folder} has no chunk vectors, which KET-RAG needs; build it with "
            "embeds_chunks=True"
        )
    numbers = KetBudget(**budget)
    texts = [chunk.passage for chunk in index.tables.all_chunks()]
    vocabulary, has = word_table(texts)
    rows = skeleton_rows(has, index.chunk_vectors, share, num_neighbours)
    tables = restricted(index.tables, rows)
    graph = build_entity_graph(tables)
    vectors = open_text_vectors(index, encoder, "skeleton", entity_texts(graph, tables))
    scores = VectorScores(vectors, QueryVectors(encoder))
    local = LocalSearch(graph, tables, scores, CommunityReports(()), counter, numbers.local)
    keywords = KeywordChannel(
        has,
        word_vectors(index, encoder, vocabulary, texts),
        index.chunk_vectors,
        counter.count(texts),
        numbers.num_words,
    )
    return KetRetriever(index.tables, encoder, local, keywords, numbers)


def restricted(tables: TripletTables, rows: Int64[np.ndarray, "kept"]) -> TripletTables:
    """The tables of some chunks: they, and the propositions that they state."""
    chunks = tables.all_chunks()
    kept = {chunks[row].id for row in rows.tolist()}
    propositions = (
        replace(one, chunk_ids=tuple(name for name in one.chunk_ids if name in kept))
        for one in tables.all_propositions()
    )
    return TripletTables.of(
        [chunks[row] for row in rows.tolist()], (one for one in propositions if one.chunk_ids)
    )
