"""HippoRAG (1): from the entities of the question over the graph of phrases to passages.

Source: "HippoRAG" (Gutierrez et al., 2024, sections 2.2 and 2.3). Each entity of the question is
linked to its nearest phrase; a seed weighs 1 / the number of its passages ("node specificity"); the
walk sees phrases only, and a passage scores the sum over its phrases. Unlike in HippoRAG 2, neither
triplets nor passages are linked.
"""

import re
from collections.abc import Callable, Sequence

import numpy as np
from jaxtyping import Float32
from scipy.sparse import csr_array

from triax.indexing.graph import PassageGraph, mentions
from triax.indexing.graph_store import open_graph
from triax.indexing.store import TripletIndex
from triax.indexing.synonyms import SynonymRule
from triax.indexing.tables import TripletTables
from triax.records.evidence import Evidence
from triax.records.verbs import Encoder
from triax.retrieval.graph import Scorer, ranked_evidence, table_scores
from triax.retrieval.pagerank import PageRank
from triax.retrieval.row_scores import Groups, QueryVectors, RowScores, VectorScores, WordScores
from triax.retrieval.seeds import best_rows, min_max
from triax.retrieval.terms import Bm25, Tfidf

# Names of several words with what joins them; digits count, for years are entities too.
_NAME = re.compile(
    r"(?:[A-Z\u00c0-\u00de\u0400-\u042f]|\d)[\w.'&-]*"
    r"(?:\s+(?:(?:of|the|de|von|van|and|del|la)\s+)*[A-Z\u00c0-\u00de\u0400-\u042f\d][\w.'&-]*)*"
)
_ASKING = frozenset(
    "what which who whom whose when where why how in on at of the a an is are was were did does do "
    "has have had can could by for from to with during if both name".split()
)


def capitalised_names(text: str) -> tuple[str, ...]:
    """Runs of capitalised words and numbers, without a question word at the start of one.

    A stand-in for the language model that HippoRAG asks for a question's entities. Scripts
    without capitals give none: then the whole text is the entity.
    """
    names = []
    for match in _NAME.finditer(text):
        words = match[0].strip(".'&-").split()
        while words and words[0].lower() in _ASKING:
            words = words[1:]
        if words:
            names.append(" ".join(words).removesuffix("'s"))
    return tuple(dict.fromkeys(names)) or ((text,) if text.strip() else ())


class EntityGraphRetriever:
    """Ranks chunks by the PageRank of their phrases, many questions at once."""

    def __init__(
        self,
        tables: TripletTables,
        graph: PassageGraph,
        phrase_scores: RowScores,
        chunk_scores: RowScores,
        entities: Callable[[str], Sequence[str]] = capitalised_names,
        *,
        damping: float = 0.5,
        num_iterations: int | None = None,
        divides_by_chunks: bool = True,
        tile: int = 256,
    ) -> None:
        """Puts the graph on the devices.

        Args:
            tables: of the index.
            graph: of the same tables, without edges of chunks.
            phrase_scores: of the graph's phrases, for texts of entities.
            chunk_scores: of the chunks; they rank where no entity scores above 0.
            entities: names the entities of a query.
            damping, num_iterations: of PageRank.
            divides_by_chunks: whether a seed weighs 1 / the number of its chunks, or 1.
            tile: questions that are taken together.
        """
        self._tables = tables
        self._graph = graph
        self._phrase_scores = phrase_scores
        self._chunk_scores = chunk_scores
        self._entities = entities
        self._damping = damping
        self._num_iterations = num_iterations
        self._divides = divides_by_chunks
        self._tile = tile
        size = len(graph.phrases)
        self._pagerank = PageRank(graph.sources, graph.targets, graph.weights, size)
        chunks, phrases = mentions(tables.sources, graph.subjects, graph.objects)
        shape = (graph.num_chunks, size)
        self._mentions = csr_array((np.ones(len(chunks), np.float32), (chunks, phrases)), shape)

    def search(self, groups: Groups, num_chunks: int) -> list[Evidence]:
        """The `num_chunks` best chunks of each group, ties by chunk id; an empty group has none."""
        return [
            ranked_evidence(self._tables, row, num_chunks) if group else Evidence()
            for group, row in zip(groups, self.scores(groups))
        ]

    def scores(self, groups: Groups) -> Float32[np.ndarray, "groups chunks"]:
        """The score of every chunk for every group, as `GraphRetriever.scores`."""
        found = [
            self._score(groups[start : start + self._tile])
            for start in range(0, len(groups), self._tile)
        ]
        return np.concatenate([np.zeros((0, self._graph.num_chunks), np.float32), *found])

    def _score(self, groups: Groups) -> Float32[np.ndarray, "groups chunks"]:
        named = [
            (number, entity)
            for number, group in enumerate(groups)
            for entity in dict.fromkeys(name for text in group for name in self._entities(text))
        ]
        reset = np.zeros((len(groups), len(self._graph.phrases)), np.float32)
        if named:
            scores = self._phrase_scores.scores([[entity] for _, entity in named])
            for (number, _), row in zip(named, scores):
                for phrase in best_rows(row, 1):
                    count = int(self._graph.chunk_counts[phrase]) if self._divides else 1
                    reset[number, phrase] = 1 / max(1, count)
        passages = min_max(self._chunk_scores.scores(groups))
        is_linked = reset.any(axis=1)
        if is_linked.any():
            ranks = self._pagerank(reset[is_linked], self._damping, self._num_iterations)
            passages[is_linked] = (self._mentions @ ranks.T).T
        return passages


def open_entity_retriever(
    index: TripletIndex,
    encoder: Encoder | None = None,
    *,
    scorer: Scorer = "encoder",
    entities: Callable[[str], Sequence[str]] = capitalised_names,
    synonym_threshold: float | None = 0.8,
    max_synonyms: int = 100,
    min_synonym_bytes: int = 3,
    is_multigraph: bool = True,
    damping: float = 0.5,
    num_iterations: int | None = None,
    divides_by_chunks: bool = True,
    tile: int = 256,
) -> EntityGraphRetriever:
    """HippoRAG (1) over an index; arguments as for `open_graph_retriever` and the class.

    Raises:
        ValueError: scorer "encoder" without synonyms, whose vectors it needs.
    """
    rule = None
    if synonym_threshold is not None:
        rule = SynonymRule(synonym_threshold, max_synonyms, min_synonym_bytes)
    graph = open_graph(index, encoder, rule, is_multigraph=is_multigraph, has_chunks=False)
    _, chunk_scores = table_scores(index, encoder, scorer)
    if scorer == "encoder":
        if encoder is None or graph.synonyms is None:
            raise ValueError(
                "linking entities by vectors needs those of the phrases; give a synonym_threshold"
            )
        phrase_scores: RowScores = VectorScores(graph.synonyms.vectors, QueryVectors(encoder))
    else:
        kind = {"bm25": Bm25, "tfidf": Tfidf}[scorer]
        phrase_scores = WordScores(kind(graph.phrases), len(graph.phrases))
    return EntityGraphRetriever(
        index.tables,
        graph,
        phrase_scores,
        chunk_scores,
        entities,
        damping=damping,
        num_iterations=num_iterations,
        divides_by_chunks=divides_by_chunks,
        tile=tile,
    )
