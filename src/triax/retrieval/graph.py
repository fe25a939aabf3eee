"""HippoRAG 2: from the question to triplets, from them over the graph of phrases to passages.

Source: "From RAG to Memory" (Gutierrez et al., 2025, section 3) and the code released with it.
Scores of triplets link a question to the graph; a filter may drop links that do not help; the
phrases of the rest are the seeds of a personalised PageRank, which ranks the passages. Passages get
a small weight in the reset vector too, by their own scores. A question without a link is answered
by those scores alone.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from jaxtyping import Float32, Int64

from triax.indexing.graph import PassageGraph
from triax.indexing.graph_store import open_graph
from triax.indexing.store import TripletIndex, check_encoder
from triax.indexing.synonyms import SynonymRule
from triax.indexing.tables import TripletTables
from triax.indexing.walk import Walk
from triax.records.evidence import Evidence, Hit
from triax.records.usage import Usage
from triax.records.verbs import Encoder
from triax.retrieval.found import chunk_evidence
from triax.retrieval.pagerank import PageRank
from triax.retrieval.row_scores import Groups, QueryVectors, RowScores, VectorScores, WordScores
from triax.retrieval.seeds import best_rows, min_max, seed_phrases
from triax.retrieval.terms import Bm25, Tfidf
from triax.retrieval.triplet_filter import TripletFilter

Scorer = Literal["encoder", "bm25", "tfidf"]


@dataclass(frozen=True, slots=True)
class Walking:
    """The numbers of HippoRAG 2, as its released code has them.

    linking_top_k: triplets that a question is linked to.
    num_seeds: phrases that the walk starts from.
    divides_by_chunks: divide a seed's weight by the number of chunks that it occurs in.
    passage_weight: of the reset of passages, relative to scores of triplets in [0, 1].
    damping: the probability to go on at each step.
    num_iterations: of PageRank; None takes as many as its error needs.
    stable_top: stop PageRank early, once so many of the best passages keep their order.
    """

    linking_top_k: int = 5
    num_seeds: int = 5
    divides_by_chunks: bool = True
    passage_weight: float = 0.05
    damping: float = 0.5
    num_iterations: int | None = None
    stable_top: int | None = None


@dataclass(frozen=True, slots=True)
class Links:
    """The triplets that a question is linked to, and what it cost to choose them."""

    rows: Int64[np.ndarray, "linked"]
    scores: Float32[np.ndarray, "linked"]
    usage: Usage = Usage()


class GraphRetriever:
    """Ranks chunks by personalised PageRank, many questions at once.

    Holds, for a tile of questions, their scores of all propositions, chunks and nodes.
    """

    def __init__(
        self,
        tables: TripletTables,
        graph: PassageGraph,
        triplet_scores: RowScores,
        chunk_scores: RowScores,
        walking: Walking = Walking(),
        triplet_filter: TripletFilter | None = None,
        tile: int = 256,
    ) -> None:
        """Puts the graph on the devices.

        Args:
            tables: of the index.
            graph: of the same tables.
            triplet_scores: of the propositions, in row order; link questions to the graph.
            chunk_scores: of the chunks, in row order.
            walking: the numbers of the method.
            triplet_filter: drops linked triplets; None keeps all.
            tile: questions that are taken together.
        """
        self._tables = tables
        self._graph = graph
        self._triplet_scores = triplet_scores
        self._chunk_scores = chunk_scores
        self._walking = walking
        self._filter = triplet_filter
        self._tile = tile
        self._pagerank = PageRank(graph.sources, graph.targets, graph.weights, graph.num_nodes)

    def search(self, groups: Groups, num_chunks: int) -> list[Evidence]:
        """The `num_chunks` best chunks of each group, ties by chunk id, whatever their scores.

        Hits are the linked triplets that the filter kept. An empty group finds nothing.
        """
        evidences = []
        for start in range(0, len(groups), self._tile):
            part = groups[start : start + self._tile]
            links, scores = self._score(part)
            for group, linked, row in zip(part, links, scores):
                hits = list(zip(linked.rows.tolist(), linked.scores.tolist()))
                found = ranked_evidence(self._tables, row, num_chunks, hits)
                evidences.append(replace(found, usage=linked.usage) if group else Evidence())
        return evidences

    def scores(self, groups: Groups) -> Float32[np.ndarray, "groups chunks"]:
        """The score of every chunk for every group, chunks in row order; zeros for an empty group.

        PageRank where a group is linked to triplets, else passage scores in [0, 1]: comparable
        within a row only.
        """
        found = np.zeros((len(groups), self._graph.num_chunks), np.float32)
        for start in range(0, len(groups), self._tile):
            part = slice(start, start + self._tile)
            found[part] = self._score(groups[part])[1]
        return found

    def resets(
        self, groups: Groups
    ) -> tuple[
        list[Links], Float32[np.ndarray, "groups chunks"], Float32[np.ndarray, "groups nodes"]
    ]:
        """Linked triplets with their scores, passage scores in [0, 1], and the reset vectors.

        A group without a seed has zeros in its reset at all phrases.
        """
        links = self._link(groups)
        passages = min_max(self._chunk_scores.scores(groups))
        graph, walking = self._graph, self._walking
        reset = np.zeros((len(groups), graph.num_nodes), np.float32)
        for number, linked in enumerate(links):
            seeds, weights = seed_phrases(
                linked.rows,
                linked.scores,
                graph.subjects,
                graph.objects,
                graph.chunk_counts,
                walking.num_seeds,
                walking.divides_by_chunks,
            )
            reset[number, seeds] = weights
        reset[:, len(graph.phrases) :] = walking.passage_weight * passages
        return links, passages, reset

    def _score(self, groups: Groups) -> tuple[list[Links], Float32[np.ndarray, "groups chunks"]]:
        links, scores, reset = self.resets(groups)
        walking, first = self._walking, len(self._graph.phrases)
        is_linked = reset[:, :first].any(axis=1)
        if is_linked.any():
            scores[is_linked] = self._pagerank(
                reset[is_linked],
                walking.damping,
                walking.num_iterations,
                first=first,
                stable_top=walking.stable_top,
            )
        return links, scores

    def _link(self, groups: Groups) -> list[Links]:
        scores = min_max(self._triplet_scores.scores(groups))
        linked = [best_rows(row, self._walking.linking_top_k) for row in scores]
        usages = [Usage()] * len(groups)
        if self._filter is not None and any(len(rows) for rows in linked):
            candidates = [[self._tables.proposition(int(row)) for row in rows] for rows in linked]
            kept = self._filter.keep(groups, candidates)
            usages = [one.usage for one in kept]
            # Once each and in range, whatever a filter says: a model may repeat or invent (R24).
            linked = [
                rows[[place for place in dict.fromkeys(one.places) if 0 <= place < len(rows)]]
                for rows, one in zip(linked, kept, strict=True)
            ]
        return [
            Links(rows, scores[number, rows], usage)
            for number, (rows, usage) in enumerate(zip(linked, usages))
        ]


def ranked_evidence(
    tables: TripletTables,
    scores: Float32[np.ndarray, "chunks"],
    num_chunks: int,
    hits: Sequence[tuple[int, float]] = (),
) -> Evidence:
    """The `num_chunks` best chunks, ties by chunk id, and hits as (proposition row, score)."""
    order = np.lexsort((np.arange(len(scores)), -scores))[: max(0, num_chunks)].tolist()
    walk = Walk(chunk_rows=tuple(order), chunk_scores=tuple(scores[order].tolist()))
    entered = set(order)
    found = tuple(
        Hit(
            tables.proposition(row),
            score,
            tuple(tables.chunk_id(c) for c in tables.sources.of(row).tolist() if c in entered),
        )
        for row, score in hits
    )
    return Evidence(chunk_evidence(tables, walk).chunks, found)


def table_scores(
    index: TripletIndex, encoder: Encoder | None, scorer: Scorer
) -> tuple[RowScores, RowScores]:
    """Scores of an index's propositions and of its chunks, by its vectors or by words.

    Raises:
        ValueError: the index has no chunk vectors, or was built with another encoder.
    """
    tables = index.tables
    if scorer == "encoder":
        if encoder is None or index.chunk_vectors is None:
            missing = "encoder was given" if encoder is None else "chunk vectors are in the index"
            raise ValueError(
                f"{index.folder}: no {missing}, which scorer='encoder' needs; give an encoder and "
                "build the index with embeds_chunks=True, or take scorer='bm25'"
            )
        check_encoder(index, encoder, probes=False)
        queries = QueryVectors(encoder)
        return VectorScores(index.vectors, queries), VectorScores(index.chunk_vectors, queries)
    kinds = {"bm25": Bm25, "tfidf": Tfidf}
    if scorer not in kinds:
        raise ValueError(f"scorer is {scorer!r}, expected one of {['encoder', *kinds]}")
    texts = tables.propositions["text"].to_pylist()
    passages = [chunk.passage for chunk in tables.all_chunks()]
    return (
        WordScores(kinds[scorer](texts), len(texts)),
        WordScores(kinds[scorer](passages), len(passages)),
    )


def open_graph_retriever(
    index: TripletIndex,
    encoder: Encoder | None = None,
    *,
    scorer: Scorer = "encoder",
    triplet_filter: TripletFilter | None = None,
    synonym_threshold: float | None = 0.8,
    max_synonyms: int = 100,
    min_synonym_bytes: int = 3,
    is_multigraph: bool = True,
    tile: int = 256,
    **walking: int | float | bool | None,
) -> GraphRetriever:
    """HippoRAG 2 over an index; its graph is read from beside it, or made there.

    Args:
        index: with chunk vectors, for scorer "encoder".
        encoder: the one of the index.
        scorer: what scores triplets and passages: the encoder, or BM25 or TF-IDF over their words.
        triplet_filter: as for `GraphRetriever`.
        synonym_threshold: the least cosine of synonyms; None leaves them out, and then a scorer
            of words needs no encoder.
        max_synonyms, min_synonym_bytes: see `SynonymRule`.
        is_multigraph: see `build_graph`.
        tile: questions that are taken together.
        walking: the fields of `Walking`.
    """
    rule = None
    if synonym_threshold is not None:
        rule = SynonymRule(synonym_threshold, max_synonyms, min_synonym_bytes)
    return GraphRetriever(
        index.tables,
        open_graph(index, encoder, rule, is_multigraph=is_multigraph),
        *table_scores(index, encoder, scorer),
        Walking(**walking),
        triplet_filter,
        tile,
    )
