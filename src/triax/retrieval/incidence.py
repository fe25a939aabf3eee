"""fast-graphrag: PageRank over entities, then two sparse products lead to relations and to chunks.

Source: fast-graphrag (circlemind, 2024). What a question names, and what it is about, is linked to
entities; a personalised PageRank spreads their scores; entities x incidence scores the relations,
relations x sources the chunks. All questions of a tile go through each product together.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float32

from triax.indexing.entity_graph import (
    EntityGraph,
    build_entity_graph,
    entity_texts,
    open_text_vectors,
)
from triax.indexing.store import TripletIndex, check_encoder
from triax.records.evidence import Evidence
from triax.records.verbs import Encoder, TokenCounter
from triax.retrieval.graph_context import ContextBudget, GraphContext, Ranking
from triax.retrieval.keywords import KeywordReader, Keywords
from triax.retrieval.pagerank import PageRank
from triax.retrieval.row_scores import Groups, QueryVectors, RowScores, VectorScores
from triax.retrieval.seeds import best_rows

if TYPE_CHECKING:
    from scipy.sparse import csr_array


@dataclass(frozen=True, slots=True)
class Spread:
    """The numbers of fast-graphrag.

    named_threshold: the least cosine of a name with its one entity.
    generic_top_k: entities of a theme, and of the question itself.
    generic_threshold: the least cosine of these.
    damping: the probability to go on along an edge.
    min_score: the least PageRank of an entity that is kept.
    max_entities, max_relations, max_chunks: that are kept after each step.
    """

    named_threshold: float = 0.7
    generic_top_k: int = 20
    generic_threshold: float = 0.5
    damping: float = 0.85
    min_score: float = 0.005
    max_entities: int = 128
    max_relations: int = 64
    max_chunks: int = 8


class IncidenceRetriever:
    """Ranks entities, relations and chunks one from the other, many questions at once."""

    def __init__(
        self,
        graph: EntityGraph,
        entity_scores: RowScores,
        keywords: KeywordReader,
        context: GraphContext,
        spread: Spread = Spread(),
        tile: int = 32,
    ) -> None:
        """Puts the graph on the devices.

        An edge of the walk weighs the number of propositions that join its entities, which are
        parallel edges in fast-graphrag.

        Args:
            graph: of the index's tables.
            entity_scores: the cosine of each entity with a text.
            keywords: reads them off a question.
            context: shows what was found.
            spread: the numbers of the method.
            tile: questions that are taken together.
        """
        self._graph = graph
        self._entity_scores = entity_scores
        self._keywords = keywords
        self._context = context
        self._spread = spread
        self._tile = tile
        self._incidence = graph.incidence
        weights = np.diff(graph.statements.indptr).astype(np.float32)
        self._pagerank = PageRank(
            np.concatenate([graph.heads, graph.tails]),
            np.concatenate([graph.tails, graph.heads]),
            np.tile(weights, 2),
            len(graph.entities),
        )

    def search(self, groups: Groups, num_chunks: int) -> list[Evidence]:
        """At most `num_chunks` chunks a group; ties by row, which is the order of chunk ids.

        The keywords are those of all queries of a group together. A group without an entity, such
        as an empty one, finds nothing.
        """
        asked = [group for group in groups if group]
        keywords = self._keywords.read(["; ".join(group) for group in asked]) if asked else []
        found: list[Evidence] = []
        for start in range(0, len(asked), self._tile):
            part = slice(start, start + self._tile)
            found += self._search(asked[part], keywords[part], num_chunks)
        results = iter(found)
        return [next(results) if group else Evidence() for group in groups]

    def _search(
        self, groups: Groups, keywords: Sequence[Keywords], num_chunks: int
    ) -> list[Evidence]:
        spread = self._spread
        reset = self.resets(groups, keywords)
        ranks = self._pagerank(reset, spread.damping)
        entities = keep_best(ranks, spread.max_entities, spread.min_score)
        relations = keep_best(entities @ self._incidence, spread.max_relations)
        chunks = keep_best(relations @ self._graph.relation_chunks, spread.max_chunks)
        return [
            self._context.evidence(
                *(_ranking(kept, number) for kept in (entities, relations, chunks)),
                num_chunks,
                said.usage,
            )
            for number, said in enumerate(keywords)
        ]

    def resets(
        self, groups: Groups, keywords: Sequence[Keywords]
    ) -> Float32[np.ndarray, "groups entities"]:
        """Where the walk starts: what each keyword and query is linked to, its scores of sum 1.

        An entity that several are linked to has the highest of their scores.
        """
        spread = self._spread
        reset = np.zeros((len(groups), len(self._graph.entities)), np.float32)
        linked = [
            (number, text, *limits)
            for number, (group, said) in enumerate(zip(groups, keywords, strict=True))
            for texts, *limits in (
                (said.low, 1, spread.named_threshold),
                ((*said.high, *group), spread.generic_top_k, spread.generic_threshold),
            )
            for text in texts
        ]
        scores = self._entity_scores.scores([[text] for _, text, *_ in linked])
        for (number, _, top_k, threshold), row in zip(linked, scores, strict=True):
            rows = best_rows(row, top_k)
            rows = rows[row[rows] >= threshold]
            if len(rows):
                shares = row[rows] / row[rows].sum()
                reset[number, rows] = np.maximum(reset[number, rows], shares)
        return reset


def keep_best(
    scores: "Float32[np.ndarray, 'groups rows'] | csr_array", count: int, least: float = 0.0
) -> "csr_array":
    """The `count` highest scores of each group that are above 0 and at least `least`.

    Ties go by row. A group's entries stand best first.
    """
    from scipy.sparse import csr_array

    sparse = csr_array(scores)
    sparse.sort_indices()
    rows, values, starts = [], [], [0]
    for low, high in zip(sparse.indptr, sparse.indptr[1:]):
        found = sparse.data[low:high]
        best = best_rows(found, count)
        best = best[found[best] >= least]
        rows.append(sparse.indices[low:high][best])
        values.append(found[best])
        starts.append(starts[-1] + len(best))
    empty = np.zeros(0, np.int32), np.zeros(0, np.float32)
    parts = (np.concatenate([empty[1], *values]), np.concatenate([empty[0], *rows]), starts)
    return csr_array(parts, shape=sparse.shape)


def _ranking(kept: "csr_array", number: int) -> Ranking:
    part = slice(kept.indptr[number], kept.indptr[number + 1])
    return Ranking(kept.indices[part], kept.data[part])


def open_incidence(
    index: TripletIndex,
    encoder: Encoder,
    keywords: KeywordReader,
    counter: TokenCounter,
    *,
    tile: int = 32,
    max_entity_tokens: int = 4000,
    max_relation_tokens: int = 3000,
    max_chunk_tokens: int = 9000,
    max_description_tokens: int = 500,
    shows_entities: bool = True,
    **spread: int | float,
) -> IncidenceRetriever:
    """fast-graphrag over an index; its entities are embedded the first time.

    Args:
        index: with triplets.
        encoder: the one of the index.
        keywords: reads the keywords of a question.
        counter: counts what is shown.
        tile: questions that are taken together.
        max_entity_tokens, max_relation_tokens, max_chunk_tokens: of what is shown, see
            `ContextBudget`.
        max_description_tokens, shows_entities: see there too.
        spread: the fields of `Spread`.

    Raises:
        ValueError: the index was built with another encoder.
    """
    check_encoder(index, encoder, probes=False)
    graph = build_entity_graph(index.tables)
    texts = entity_texts(graph, index.tables)
    vectors = open_text_vectors(index, encoder, "entities", texts)
    budget = ContextBudget(
        max_entity_tokens,
        max_relation_tokens,
        max_chunk_tokens,
        max_description_tokens,
        shows_entities,
    )
    return IncidenceRetriever(
        graph,
        VectorScores(vectors, QueryVectors(encoder)),
        keywords,
        GraphContext(graph, index.tables, texts, counter, budget),
        Spread(**spread),
        tile,
    )
