"""LightRAG: what a question names leads to entities, what it is about leads to relations.

Source: "LightRAG" (Guo et al., 2024, section 3.2) and its released code: 1.0.1, of the paper, for
local, global and hybrid search, 1.5.7 for mix. The code walks over lists for each entity; here
incidence matrices give the same order.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
from jaxtyping import Float32, Int64

from triax.indexing.entity_graph import (
    EntityGraph,
    build_entity_graph,
    entity_texts,
    open_text_vectors,
    relation_texts,
)
from triax.indexing.store import TripletIndex, check_encoder
from triax.records.evidence import Evidence
from triax.records.verbs import Encoder, TokenCounter
from triax.retrieval.graph_context import ContextBudget, GraphContext, Ranking
from triax.retrieval.keywords import KeywordReader, Keywords
from triax.retrieval.row_scores import Groups, QueryVectors, RowScores, VectorScores
from triax.retrieval.seeds import best_rows

if TYPE_CHECKING:
    from scipy.sparse import csr_array

Channel = Literal["chunks", "entities", "relations"]
Rows = Int64[np.ndarray, "_"]
# In the order in which their lists are merged.
MODES: dict[str, tuple[Channel, ...]] = {
    "local": ("entities",),
    "global": ("relations",),
    "hybrid": ("entities", "relations"),
    "mix": ("chunks", "entities", "relations"),
    "naive": ("chunks",),
}
_NONE = np.zeros(0, np.int64)


@dataclass(frozen=True, slots=True)
class Reach:
    """How far the channels reach; the numbers of the paper's code.

    top_k: entities by the low-level keywords, and relations by the high-level ones.
    chunk_top_k: chunks by the question itself.
    threshold: the least cosine of all three.
    """

    top_k: int = 60
    chunk_top_k: int = 20
    threshold: float = 0.2


@dataclass(frozen=True, slots=True)
class Lists:
    """What a channel found, each best first."""

    entities: Rows
    relations: Rows
    chunks: Rows


class LightRag:
    """Evidence from one to three channels; lists of several are merged in turns (`take_turns`).

    Lists are ordered by several keys, so scores say no more than the order: 1 / rank.
    """

    def __init__(
        self,
        graph: EntityGraph,
        scores: Mapping[Channel, RowScores],
        keywords: KeywordReader,
        context: GraphContext,
        reach: Reach = Reach(),
        tile: int = 32,
    ) -> None:
        """Takes what was made of an index.

        Args:
            graph: of its tables.
            scores: how near rows are to a text, for each channel that is searched. Entities are
                asked for the low-level keywords, relations for the high-level ones, chunks for
                the question.
            keywords: reads them off a question; not asked where only chunks are searched.
            context: shows what was found.
            reach: the numbers of the method.
            tile: questions that are scored together.
        """
        self.reads_triplets = set(scores) != {"chunks"}
        self._graph = graph
        self._scores = scores
        self._keywords = keywords
        self._context = context
        self._reach = reach
        self._tile = tile
        self._incidence = graph.incidence
        self._joined = joined(graph)
        self._is_mentioned = graph.entity_chunks.astype(bool).astype(np.float32)
        self._places = relation_places(graph)

    def search(self, groups: Groups, num_chunks: int) -> list[Evidence]:
        """At most `num_chunks` chunks a group, and as much of all as the budget has room for.

        The keywords are those of all queries of a group together. Where a level has none, the
        queries stand for it. An empty group finds nothing.
        """
        asked = [group for group in groups if group]
        found: list[Evidence] = []
        keywords = [Keywords((), ())] * len(asked)
        if self.reads_triplets and asked:
            keywords = self._keywords.read(["; ".join(group) for group in asked])
        for start in range(0, len(asked), self._tile):
            part = slice(start, start + self._tile)
            found += self._search(asked[part], keywords[part], num_chunks)
        results = iter(found)
        return [next(results) if group else Evidence() for group in groups]

    def _search(
        self, groups: Groups, keywords: Sequence[Keywords], num_chunks: int
    ) -> list[Evidence]:
        together = list(zip(groups, keywords, strict=True))
        texts: dict[Channel, Groups] = {
            "chunks": groups,
            "entities": [_level(group, said.low) for group, said in together],
            "relations": [_level(group, said.high) for group, said in together],
        }
        scores = {name: self._scores[name].scores(texts[name]) for name in self._scores}
        found = []
        for number, said in enumerate(keywords):
            lists = [self._lists(name, row[number]) for name, row in scores.items()]
            rankings = (
                Ranking(take_turns([getattr(one, kind) for one in lists]))
                for kind in ("entities", "relations", "chunks")
            )
            found.append(self._context.evidence(*rankings, num_chunks, said.usage))
        return found

    def _lists(self, channel: Channel, scores: Float32[np.ndarray, "rows"]) -> Lists:
        reach = self._reach
        top = best_rows(scores, reach.chunk_top_k if channel == "chunks" else reach.top_k)
        top = top[scores[top] >= reach.threshold]
        if channel == "chunks":
            return Lists(_NONE, _NONE, top)
        return self._local(top) if channel == "entities" else self._global(top)

    def _local(self, entities: Int64[np.ndarray, "found"]) -> Lists:
        """Around entities: their relations, and the chunks that mention them.

        Chunks go by the first entity that they mention, then by how many of its neighbours they
        mention too, then by row.
        """
        relations = np.unique(self._incidence[entities].indices).astype(np.int64)
        mentioned = self._is_mentioned[entities]
        chunks, first = first_rows(mentioned)
        shared = (self._joined[entities] @ self._is_mentioned)[:, chunks].toarray()
        counts = shared[first, np.arange(len(chunks))]
        return Lists(
            entities, self._by_degree(relations), chunks[np.lexsort((chunks, -counts, first))]
        )

    def _global(self, relations: Int64[np.ndarray, "found"]) -> Lists:
        """From relations to their entities and to the chunks that state them, in their order."""
        relations = self._by_degree(relations)
        ends = np.stack([self._graph.heads[relations], self._graph.tails[relations]], axis=1)
        chunks, first = first_rows(self._graph.relation_chunks[relations])
        return Lists(
            take_turns([ends.reshape(-1).astype(np.int64)]),
            relations,
            chunks[np.lexsort((chunks, first))],
        )

    def _by_degree(self, relations: Int64[np.ndarray, "found"]) -> Rows:
        return relations[np.argsort(self._places[relations])]


def _level(group: Sequence[str], keywords: Sequence[str]) -> Sequence[str]:
    """The keywords of a level as one text, or the queries where there is none."""
    return (", ".join(keywords),) if keywords else group


def relation_places(graph: EntityGraph) -> Int64[np.ndarray, "relations"]:
    """Where each relation stands among all: by the degrees of its entities, weight, row."""
    degrees = graph.degrees
    together = degrees[graph.heads] + degrees[graph.tails]
    order = np.lexsort((np.arange(len(together)), -graph.weights, -together))
    places = np.empty(len(order), np.int64)
    places[order] = np.arange(len(order))
    return places


def joined(graph: EntityGraph) -> "csr_array":
    """[entities, entities], 1 where a relation joins two."""
    from scipy.sparse import csr_array

    rows = np.concatenate([graph.heads, graph.tails])
    columns = np.concatenate([graph.tails, graph.heads])
    size = len(graph.entities)
    return csr_array((np.ones(len(rows), np.float32), (rows, columns)), shape=(size, size))


def first_rows(
    matrix: "csr_array",
) -> tuple[Int64[np.ndarray, "columns"], Int64[np.ndarray, "columns"]]:
    """The columns that have an entry, ascending, and the first row that has one in each."""
    rows = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
    order = np.lexsort((rows, matrix.indices))
    columns, starts = np.unique(matrix.indices[order], return_index=True)
    return columns.astype(np.int64), rows[order][starts]


def take_turns(lists: Sequence[Int64[np.ndarray, "_"]]) -> Rows:
    """The first of each list, then the second of each, and so on, every row once.

    >>> take_turns([np.array([4, 2, 3]), np.array([2, 5])]).tolist()
    [4, 2, 5, 3]
    """
    places = np.concatenate([np.arange(len(one)) for one in lists])
    turns = np.repeat(np.arange(len(lists)), [len(one) for one in lists])
    rows = np.concatenate(lists)[np.lexsort((turns, places))].astype(np.int64)
    return rows[np.sort(np.unique(rows, return_index=True)[1])]


def open_lightrag(
    index: TripletIndex,
    encoder: Encoder,
    keywords: KeywordReader,
    counter: TokenCounter,
    mode: str = "hybrid",
    top_k: int = 60,
    chunk_top_k: int = 20,
    threshold: float = 0.2,
    tile: int = 32,
    **budget: int | bool,
) -> LightRag:
    """LightRAG over an index; entities and relations are embedded the first time.

    Args:
        index: with chunk vectors, for modes "mix" and "naive".
        encoder: the one of the index.
        keywords: reads the keywords of a question.
        counter: counts what is shown.
        mode: "local" starts from entities, "global" from relations, "hybrid" from both, "mix" from
            both and from chunks, "naive" from chunks alone.
        top_k, chunk_top_k, threshold: the fields of `Reach`.
        tile: questions that are scored together.
        budget: the fields of `ContextBudget`.

    Raises:
        ValueError: there is no such mode, or the index has no chunk vectors but needs them, or was
            built with another encoder.
    """
    if mode not in MODES:
        raise ValueError(f"mode is {mode!r}, expected one of {list(MODES)}")
    channels = MODES[mode]
    if "chunks" in channels and index.chunk_vectors is None:
        raise ValueError(
            f"{index.folder} has no chunk vectors, which mode={mode!r} needs; build it with "
            "embeds_chunks=True, or take mode='hybrid'"
        )
    check_encoder(index, encoder, probes=False)
    graph = build_entity_graph(index.tables)
    texts = entity_texts(graph, index.tables)
    vectors = {
        "chunks": lambda: index.chunk_vectors,
        "entities": lambda: open_text_vectors(index, encoder, "entities", texts),
        "relations": lambda: open_text_vectors(
            index, encoder, "relations", relation_texts(graph, index.tables)
        ),
    }
    scores = {name: VectorScores(vectors[name](), QueryVectors(encoder)) for name in channels}
    context = GraphContext(graph, index.tables, texts, counter, ContextBudget(**budget))
    return LightRag(graph, scores, keywords, context, Reach(top_k, chunk_top_k, threshold), tile)
