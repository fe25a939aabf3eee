"""GraphRAG's local search: from the entities nearest to a question to what is known around them.

Source: "From Local to Global" (Edge et al., 2024) and the local search of GraphRAG 3.1.2. The
question is embedded; the entities with the nearest descriptions are selected; reports of their
communities, their chunks and their relations are ranked and packed, each into its own share of a
budget of tokens. No language model is asked.

An entity's description is the list of its propositions (see `entity_graph`), which the relations
say again; so the share of entities and relations is filled with relations alone.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float, Int64

from triax.indexing.entity_graph import (
    EntityGraph,
    build_entity_graph,
    entity_texts,
    open_text_vectors,
)
from triax.indexing.reports import CommunityReports, Report
from triax.indexing.store import TripletIndex, check_encoder
from triax.indexing.tables import TripletTables
from triax.records.evidence import Evidence, Hit, Note, ScoredChunk, ScoredNote
from triax.records.verbs import Encoder, TokenCounter
from triax.retrieval.packing import pack
from triax.retrieval.row_scores import Groups, QueryVectors, RowScores, VectorScores
from triax.retrieval.seeds import best_rows

if TYPE_CHECKING:
    from scipy.sparse import csr_array


@dataclass(frozen=True, slots=True)
class LocalBudget:
    """The numbers of the local search. A budget of 12,000 tokens, split at 15, 50 and 35 %.

    num_entities: that a question selects; GraphRAG asks for 10 and takes twice as many.
    max_level: of the communities whose reports are shown; 0 is the widest.
    max_report_tokens: of reports.
    max_chunk_tokens: of chunks.
    max_relation_tokens: of relations.
    relations_per_entity: relations that lead out of the selection, for each selected entity.
    """

    num_entities: int = 20
    max_level: int = 2
    max_report_tokens: int = 1800
    max_chunk_tokens: int = 6000
    max_relation_tokens: int = 4200
    relations_per_entity: int = 10


class LocalSearch:
    """Evidence around the entities of a question: reports as notes, chunks, relations as hits.

    Each kind is ordered by several keys, so scores say no more than the order: 1 / rank.
    """

    def __init__(
        self,
        graph: EntityGraph,
        tables: TripletTables,
        entity_scores: RowScores,
        reports: CommunityReports,
        counter: TokenCounter,
        budget: LocalBudget = LocalBudget(),
    ) -> None:
        """Takes what was made of an index.

        Args:
            graph: of the tables.
            tables: of the index.
            entity_scores: how near each entity is to a question.
            reports: of the graph's communities.
            counter: counts what is packed.
            budget: the numbers of the method.
        """
        self._graph = graph
        self._tables = tables
        self._scores = entity_scores
        self._reports = reports.at(budget.max_level)
        self._counter = counter
        self._budget = budget
        self._membership = _membership(self._reports, len(graph.entities))
        states = graph.relation_chunks.copy()
        states.data[:] = 1
        # How many of an entity's relations each chunk states.
        self._relation_counts = (graph.incidence @ states).tocsr()

    def search(self, groups: Groups, num_chunks: int) -> list[Evidence]:
        """At most `num_chunks` chunks a group, and as much of all as the budget has room for.

        A group that is near to no entity, such as an empty one, finds nothing.
        """
        return [
            self._found(best_rows(row, self._budget.num_entities), num_chunks)
            for row in self._scores.scores(groups)
        ]

    def _found(self, selected: Int64[np.ndarray, "selected"], num_chunks: int) -> Evidence:
        if not len(selected):
            return Evidence()
        chunks = self._chunks(selected, num_chunks)
        entered = {found.chunk.id for found in chunks}
        return Evidence(chunks, self._hits(selected, entered), self._notes(selected))

    def _chunks(
        self, selected: Int64[np.ndarray, "selected"], num_chunks: int
    ) -> tuple[ScoredChunk, ...]:
        mentions = self._graph.entity_chunks[selected].toarray()
        counts = self._relation_counts[selected].toarray()
        rows = rank_chunks(mentions, counts)[: max(0, num_chunks)]
        chunks = [self._tables.chunk(row) for row in rows.tolist()]
        kept = self._packed([one.passage for one in chunks], self._budget.max_chunk_tokens)
        return tuple(ScoredChunk(chunks[place], 1 / (place + 1)) for place in kept)

    def _hits(self, selected: Int64[np.ndarray, "selected"], entered: set[str]) -> tuple[Hit, ...]:
        limit = self._budget.relations_per_entity * len(selected)
        said, counts = self._graph.statements, np.diff(self._tables.sources.offsets)
        rows: list[int] = []
        for relation in rank_relations(self._graph, selected, limit).tolist():
            stated = said.indices[said.indptr[relation] : said.indptr[relation + 1]]
            rows += stated[np.lexsort((stated, -counts[stated]))].tolist()
        found = [self._tables.proposition(row) for row in rows]
        kept = self._packed([one.text for one in found], self._budget.max_relation_tokens)
        return tuple(
            Hit(
                found[place],
                1 / (place + 1),
                tuple(one for one in found[place].chunk_ids if one in entered),
            )
            for place in kept
        )

    def _notes(self, selected: Int64[np.ndarray, "selected"]) -> tuple[ScoredNote, ...]:
        matches = self._membership[:, selected].sum(axis=1)
        ratings = np.array([report.rating for report in self._reports])
        found = [self._reports[row] for row in rank_reports(matches, ratings).tolist()]
        kept = self._packed([one.shown for one in found], self._budget.max_report_tokens)
        notes = [Note(f"report:{one.id}", one.text, one.title, one.chunk_ids) for one in found]
        return tuple(ScoredNote(notes[place], 1 / (place + 1)) for place in kept)

    def _packed(self, texts: Sequence[str], max_tokens: int) -> list[int]:
        """The places of the first texts that fit, as GraphRAG ends at the first that does not."""
        return pack(self._counter.count(texts), max_tokens)


def rank_reports(
    matches: Float[np.ndarray, "reports"], ratings: Float[np.ndarray, "reports"]
) -> Int64[np.ndarray, "ranked"]:
    """Reports of communities with a selected entity: by their number, rating, row."""
    rows = np.flatnonzero(matches)
    return rows[np.lexsort((rows, -ratings[rows], -matches[rows]))]


def rank_chunks(
    mentions: Float[np.ndarray, "selected chunks"], counts: Float[np.ndarray, "selected chunks"]
) -> Int64[np.ndarray, "ranked"]:
    """Chunks that mention a selected entity, those of the first entity first.

    Among those of one entity: by how many of its relations they state, then by row. A chunk
    stands where the first entity that it mentions puts it.

    Args:
        mentions: not 0 where the chunk mentions the entity, best entity first.
        counts: the entity's relations that the chunk states.
    """
    rows = np.flatnonzero(mentions.any(axis=0))
    first = (mentions[:, rows] != 0).argmax(axis=0)
    return rows[np.lexsort((rows, -counts[first, rows], first))]


def rank_relations(
    graph: EntityGraph, selected: Int64[np.ndarray, "selected"], max_outside: int
) -> Int64[np.ndarray, "ranked"]:
    """Relations between selected entities, then those that lead out of the selection.

    Inner ones go by the sum of their entities' degrees. Outer ones go by the number of selected
    entities that the outer entity is related to, then by that sum, `max_outside` at most. Ties
    by weight, then by row.
    """
    chosen = np.zeros(len(graph.entities), bool)
    chosen[selected] = True
    heads, tails = chosen[graph.heads], chosen[graph.tails]
    degrees = graph.degrees
    connected = degrees[graph.heads] + degrees[graph.tails]
    outside = np.flatnonzero(heads ^ tails)
    outer = np.where(heads, graph.tails, graph.heads)
    links = np.bincount(outer[outside], minlength=len(chosen))[outer]

    def ranked(rows: np.ndarray, *keys: np.ndarray) -> np.ndarray:
        falling = (graph.weights, connected, *keys)
        return rows[np.lexsort((rows, *(-key[rows] for key in falling)))]

    inner = ranked(np.flatnonzero(heads & tails))
    return np.concatenate([inner, ranked(outside, links)[: max(0, max_outside)]])


def open_local_search(
    index: TripletIndex,
    encoder: Encoder,
    reports: CommunityReports,
    counter: TokenCounter,
    **budget: int,
) -> LocalSearch:
    """The local search over an index; its entities' descriptions are embedded the first time.

    Args:
        index: with the triplets that the reports were made of.
        encoder: the one of the index.
        reports: of the index.
        counter: counts what is packed.
        budget: the fields of `LocalBudget`.

    Raises:
        ValueError: the index was built with another encoder.
    """
    check_encoder(index, encoder, probes=False)
    graph = build_entity_graph(index.tables)
    texts = entity_texts(graph, index.tables)
    vectors = open_text_vectors(index, encoder, "entities", texts)
    scores = VectorScores(vectors, QueryVectors(encoder))
    return LocalSearch(graph, index.tables, scores, reports, counter, LocalBudget(**budget))


def _membership(reports: Sequence[Report], num_entities: int) -> "csr_array":
    """[reports, entities], 1 where the entity is a member of the report's community."""
    from scipy.sparse import csr_array

    columns = np.array([one for report in reports for one in report.entities], np.int64)
    starts = np.cumsum([0, *(len(report.entities) for report in reports)])
    ones = np.ones(len(columns), np.float32)
    return csr_array((ones, columns, starts), shape=(len(reports), num_entities))
