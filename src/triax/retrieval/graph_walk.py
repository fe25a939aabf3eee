"""Compression by a walk over the graph: what is near the question's names stays.

Source: "The reasoning bottleneck" (Zarinkia, Srinivasan, Thomo, 2026) and the code released with
it. The entities that the question names are seeds; three hops from them over the triplets of the
context reach others; a chunk that mentions a reached entity adds all of its own one hop further
out. Then, hop by hop, relations and the chunks that mention an entity of that hop fill the budget;
then chunks that share words with the question; then notes.

Where it differs from that code:

- A chunk mentions what its triplets do. There each name is sought in each text.
- The budget holds: it is counted in the reader's tokens, and a relation that does not fit is left
  out. There 4,000 tokens are 4,000 / 1.3 words, and lines of entities and relations stay even past
  them, so that contexts end at about 4,800 tokens. `keeps_all_relations=True` is that rule; where
  the index states much, its relations alone can be more than the whole context was.
- A relation belongs to the nearer of its ends, not to its subject.
- What is neither reached nor shares a word comes last. There it is dropped, whatever room is left.
- Where the question names nothing, evidence is truncated. There it stays as long as it was.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Bool, Int16, Integer

from triax.indexing.entity_graph import build_entity_graph
from triax.indexing.store import TripletIndex
from triax.indexing.tables import TripletTables
from triax.records.evidence import Evidence, Hit
from triax.retrieval.bfs import hops, undirected
from triax.retrieval.named_phrases import NamedPhrases, content_words
from triax.retrieval.packing import pack
from triax.retrieval.shown import Piece, ShownTokens, keep
from triax.retrieval.truncation import Truncation

Groups = Sequence[Sequence[str]]
# In this order texts fill the budget; within the first by hop.
_REACHED, _SHARES_WORDS, _NOTE, _REST = range(4)


class GraphWalkCompressor:
    """Orders the texts of evidence by their hops from the question, and fills the budget so."""

    def __init__(
        self,
        index: TripletIndex,
        shown: ShownTokens,
        max_tokens: int = 4000,
        max_hops: int = 3,
        min_letters: int = 5,
        within_evidence: bool = True,
        keeps_all_relations: bool = False,
        tile: int = 64,
    ) -> None:
        """Derives the graph from the triplets of an index.

        Args:
            index: where the evidence comes from; what it does not know is never reached.
            shown: counts what the reader is shown. Where propositions are not, none are added.
            max_tokens: the budget of one evidence.
            max_hops: of the walk.
            min_letters: of a word that is enough to name an entity.
            within_evidence: walk over what the evidence states; False walks over the whole graph,
                also by ways that lead through other chunks. What is kept is of the evidence in
                either case.
            keeps_all_relations: past the budget too, as in the released code.
            tile: questions that are walked together; a hop number is held for each of them and
                every entity and proposition.
        """
        self._graph = _Graph(index.tables, min_letters)
        self._shown = shown
        self._max_tokens = max_tokens
        self._max_hops = max_hops
        self._within_evidence = within_evidence
        self._keeps_all_relations = keeps_all_relations
        self._tile = tile
        self._truncation = Truncation(shown, max_tokens)

    def compress(self, groups: Groups, evidences: Sequence[Evidence]) -> list[Evidence]:
        """Each evidence within `max_tokens`, nearest to what its group names first.

        Relations that chunks of the evidence state are added to its hits, with score 0.
        """
        found = []
        for start in range(0, len(groups), self._tile):
            part = slice(start, start + self._tile)
            contexts = [self._graph.context(one) for one in evidences[part]]
            reached = self._graph.walk(
                groups[part], contexts, self._max_hops, within_contexts=self._within_evidence
            )
            for group, context, hop in zip(groups[part], contexts, reached.T, strict=True):
                if (hop >= 0).any():
                    found.append(self._fill(group, context, hop))
                else:
                    found += self._truncation.compress([group], [context.evidence])
        return found

    def _fill(
        self, group: Sequence[str], context: "_Context", reached: Int16[np.ndarray, "entities"]
    ) -> Evidence:
        if "hits" in self._shown.kinds:
            context = self._graph.with_relations(context)
        evidence = context.evidence
        order = _order(group, context, _expanded(reached, context.mentioned))
        (sizes,) = self._shown.sizes([evidence])
        kept = pack(
            [sizes[piece] for piece in order],
            self._max_tokens - self._shown.headings(evidence),
            skips=True,
            always=[self._keeps_all_relations and kind == "hits" for kind, _ in order],
        )
        return keep(evidence, [order[place] for place in kept])


@dataclass(frozen=True, slots=True)
class _Context:
    """An evidence and, for each of its chunks and hits, the entities that it mentions.

    `hits` are the proposition rows of its hits, -1 where the index does not know one, and `stated`
    those that its chunks state, in the order of the chunks.
    """

    evidence: Evidence
    mentioned: tuple[Integer[np.ndarray, "_"], ...]
    joined: tuple[Integer[np.ndarray, "_"], ...]
    hits: tuple[int, ...]
    stated: tuple[int, ...]


class _Graph:
    """What the walk knows of an index: who mentions what, and which entities have which names."""

    def __init__(self, tables: TripletTables, min_letters: int) -> None:
        graph = build_entity_graph(tables)
        self._tables = tables
        self._names = NamedPhrases(graph.entities, min_letters)
        self._num_entities, num_propositions = graph.mentions.shape
        # A step leads from an entity to a proposition, another to its other end: two are a hop.
        # So a part of the graph is a set of propositions.
        entities, propositions = graph.mentions.nonzero()
        self._neighbours = undirected(
            entities, propositions + self._num_entities, self._num_entities + num_propositions
        )
        self._of_chunk = graph.entity_chunks.T.tocsr()
        self._of_proposition = graph.mentions.T.tocsr()
        rows = np.repeat(np.arange(num_propositions), np.diff(tables.sources.offsets))
        order = np.argsort(tables.sources.rows, kind="stable")
        borders = np.searchsorted(
            tables.sources.rows[order], np.arange(1, tables.sources.num_chunks)
        )
        self._stated_by = np.split(rows[order], borders)
        self._chunk_rows = _rows(tables.chunks["id"].to_pylist())
        self._proposition_rows = _rows(tables.propositions["id"].to_pylist())

    def context(self, evidence: Evidence) -> _Context:
        """Looks an evidence up."""
        chunks = [self._chunk_rows.get(one.chunk.id, -1) for one in evidence.chunks]
        hits = [self._proposition_rows.get(one.proposition.id, -1) for one in evidence.hits]
        stated = (row for chunk in chunks if chunk >= 0 for row in self._stated_by[chunk].tolist())
        return _Context(
            evidence,
            tuple(_row(self._of_chunk, chunk) for chunk in chunks),
            tuple(_row(self._of_proposition, hit) for hit in hits),
            tuple(hits),
            tuple(dict.fromkeys(stated)),
        )

    def with_relations(self, context: _Context) -> _Context:
        """The same with everything that its chunks state among its hits."""
        known = set(context.hits)
        new = [row for row in context.stated if row not in known]
        added = tuple(Hit(self._tables.proposition(row), 0.0, ()) for row in new)
        return replace(
            context,
            evidence=replace(context.evidence, hits=context.evidence.hits + added),
            joined=context.joined + tuple(_row(self._of_proposition, row) for row in new),
            hits=context.hits + tuple(new),
        )

    def walk(
        self,
        groups: Groups,
        contexts: Sequence[_Context],
        max_hops: int,
        *,
        within_contexts: bool,
    ) -> Int16[np.ndarray, "entities groups"]:
        """The hop of each entity from those that a group names; -1 where it is not reached."""
        size = (self._neighbours.shape[0], len(groups))
        seeds = np.zeros(size, bool)
        seeds[: self._num_entities] = self._names.find(groups)
        allowed = self._allowed(contexts) if within_contexts else None
        steps = hops(self._neighbours, seeds, 2 * max_hops, allowed)[: self._num_entities]
        return np.where(steps < 0, steps, steps // 2)

    def _allowed(self, contexts: Sequence[_Context]) -> Bool[np.ndarray, "nodes groups"]:
        """The propositions that each context states or has as hits, and their entities."""
        allowed = np.zeros((self._neighbours.shape[0], len(contexts)), bool)
        for column, context in enumerate(contexts):
            rows = np.array([*context.stated, *(row for row in context.hits if row >= 0)], int)
            allowed[rows + self._num_entities, column] = True
            for entities in (*context.mentioned, *context.joined):
                allowed[entities, column] = True
        return allowed


def _expanded(
    reached: Int16[np.ndarray, "entities"], mentioned: Sequence[Integer[np.ndarray, "_"]]
) -> Int16[np.ndarray, "entities"]:
    """Hops with co-occurrence: the other entities of a chunk that mentions a reached one."""
    expanded = reached.copy()
    for entities in mentioned:
        if (reached[entities] >= 0).any():
            expanded[entities[reached[entities] < 0]] = reached.max() + 1
    return expanded


def _order(
    group: Sequence[str], context: _Context, reached: Int16[np.ndarray, "entities"]
) -> list[Piece]:
    """All texts, the most useful first.

    By hop: relations, those first that the search had found, then chunks, more mentions of reached
    entities first. What is equal stays in the order as it was found.
    """
    evidence = context.evidence
    asked = {word for text in group for word in content_words(text)}
    keys: dict[Piece, tuple[int, int, int, int]] = {}
    for place, ends in enumerate(context.joined):
        is_reached = len(ends) > 0 and (reached[ends] >= 0).all()
        key = (_REACHED, int(reached[ends].min()), 0, 0) if is_reached else (_REST, 0, 0, 0)
        keys["hits", place] = key
    for place, entities in enumerate(context.mentioned):
        near = reached[entities][reached[entities] >= 0]
        if len(near):
            keys["chunks", place] = (_REACHED, int(near.min()), 1, -len(near))
        else:
            shared = len(asked & content_words(evidence.chunks[place].chunk.passage))
            keys["chunks", place] = (_SHARES_WORDS if shared else _REST, 0, 1, -shared)
    keys |= {("notes", place): (_NOTE, 0, 0, 0) for place in range(len(evidence.notes))}
    return sorted(keys, key=lambda piece: (keys[piece], piece[1]))


def _row(matrix, row: int) -> Integer[np.ndarray, "_"]:
    """The columns of a sparse matrix's row; none where there is no such row."""
    if row < 0:
        return np.zeros(0, np.int32)
    return matrix.indices[matrix.indptr[row] : matrix.indptr[row + 1]]


def _rows(ids: Sequence[str]) -> dict[str, int]:
    return {name: row for row, name in enumerate(ids)}
