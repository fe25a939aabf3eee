"""From ranked rows of an entity graph to what is shown of them, each kind within its budget.

Source: the query contexts of LightRAG (Guo et al., 2024) and of fast-graphrag: entities with their
descriptions, relations, chunks. Each list ends at the first text that does not fit.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Integer

from triax.indexing.entity_graph import EntityGraph
from triax.indexing.tables import TripletTables
from triax.records.evidence import Evidence, Hit, Note, ScoredChunk, ScoredNote
from triax.records.usage import Usage
from triax.records.verbs import TokenCounter
from triax.retrieval.packing import pack


@dataclass(frozen=True, slots=True)
class ContextBudget:
    """How much is shown. The defaults are LightRAG's.

    max_entity_tokens: of the descriptions of entities.
    max_relation_tokens: of what relations state.
    max_chunk_tokens: of chunks.
    max_description_tokens: of one description; a longer one loses its last propositions, where
        LightRAG has a language model write a shorter one.
    shows_entities: whether descriptions are shown; they repeat what relations and chunks say.
    """

    max_entity_tokens: int = 4000
    max_relation_tokens: int = 4000
    max_chunk_tokens: int = 4000
    max_description_tokens: int = 500
    shows_entities: bool = True


@dataclass(frozen=True, slots=True)
class Ranking:
    """Rows of one kind, best first, with scores; None scores each by its place, 1 / rank."""

    rows: Integer[np.ndarray, "ranked"]
    scores: Float[np.ndarray, "ranked"] | None = None

    def score(self, place: int) -> float:
        """Of the row at a place."""
        return 1 / (place + 1) if self.scores is None else float(self.scores[place])


class GraphContext:
    """Turns rankings into evidence: descriptions as notes, relations as hits, chunks."""

    def __init__(
        self,
        graph: EntityGraph,
        tables: TripletTables,
        descriptions: Sequence[str],
        counter: TokenCounter,
        budget: ContextBudget = ContextBudget(),
    ) -> None:
        """Takes what was made of an index.

        Args:
            graph: of the tables.
            tables: of the index.
            descriptions: of the entities, each after its name, as `entity_texts` gives them.
            counter: counts what is shown.
            budget: how much is shown.
        """
        self._graph = graph
        self._tables = tables
        self._descriptions = descriptions
        self._counter = counter
        self._budget = budget

    def evidence(
        self,
        entities: Ranking,
        relations: Ranking,
        chunks: Ranking,
        num_chunks: int,
        usage: Usage = Usage(),
    ) -> Evidence:
        """What fits of each ranking, and at most `num_chunks` chunks.

        A hit names those of its sources that are shown, and scores as its relation does.
        """
        shown = self._chunks(chunks, num_chunks)
        entered = {found.chunk.id for found in shown}
        notes = self._notes(entities) if self._budget.shows_entities else ()
        return Evidence(shown, self._hits(relations, entered), notes, usage)

    def _chunks(self, ranking: Ranking, num_chunks: int) -> tuple[ScoredChunk, ...]:
        rows = ranking.rows[: max(0, num_chunks)].tolist()
        chunks = [self._tables.chunk(row) for row in rows]
        kept = self._packed([one.passage for one in chunks], self._budget.max_chunk_tokens)
        return tuple(ScoredChunk(chunks[place], ranking.score(place)) for place in kept)

    def _hits(self, ranking: Ranking, entered: set[str]) -> tuple[Hit, ...]:
        stated = self._graph.statements[ranking.rows]
        places = np.repeat(np.arange(len(ranking.rows)), np.diff(stated.indptr))
        counts = np.diff(self._tables.sources.offsets)
        order = np.lexsort((stated.indices, -counts[stated.indices], places))
        # No text has less than one token, so no more of them can fit.
        order = order[: max(0, self._budget.max_relation_tokens)]
        rows, places = stated.indices[order], places[order]
        texts = self._tables.propositions["text"].take(rows).to_pylist()
        found = []
        for place in self._packed(texts, self._budget.max_relation_tokens):
            proposition = self._tables.proposition(int(rows[place]))
            sources = tuple(one for one in proposition.chunk_ids if one in entered)
            found.append(Hit(proposition, ranking.score(int(places[place])), sources))
        return tuple(found)

    def _notes(self, ranking: Ranking) -> tuple[ScoredNote, ...]:
        limit = self._budget.max_entity_tokens
        described = [
            (place, entity, text)
            for place, entity in enumerate(ranking.rows[: max(0, limit)].tolist())
            if (text := self._described(entity))
        ]
        kept = self._packed([text for *_, text in described], limit)
        return tuple(
            ScoredNote(self._note(entity, text), ranking.score(place))
            for place, entity, text in (described[one] for one in kept)
        )

    def _described(self, entity: int) -> str:
        """Name and description as far as there is room; "" where nothing is left of the latter."""
        whole = self._descriptions[entity]
        text = self._counter.cut(whole, self._budget.max_description_tokens)
        # Half a proposition says something else.
        if text != whole and not whole.startswith("\n", len(text)):
            text = text.rpartition("\n")[0]
        return text if len(text) > len(self._graph.names[entity]) else ""

    def _note(self, entity: int, text: str) -> Note:
        name = self._graph.names[entity]
        mentioned = self._graph.entity_chunks[[entity]].indices
        ids = self._tables.chunks["id"].take(np.sort(mentioned)).to_pylist()
        said = text[len(name) :].strip()
        return Note(f"entity:{self._graph.entities[entity]}", said, name, tuple(ids))

    def _packed(self, texts: Sequence[str], max_tokens: int) -> list[int]:
        return pack(self._counter.count(texts), max_tokens)
