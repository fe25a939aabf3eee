"""RAPTOR: chunks and the summaries above them, searched in one pool or from the top down.

Source: "RAPTOR" (Sarthi et al., ICLR 2024, section 3) and the code released with it. The budget of
tokens rules what is shown, chunks and summaries together; chunks become the evidence's chunks and
summaries its notes. `num_chunks` bounds the chunks besides.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float32, Int64

from triax.indexing.store import TripletIndex, check_encoder
from triax.indexing.tables import TripletTables
from triax.indexing.tree import SummaryTree
from triax.records.evidence import Evidence, Note, ScoredChunk, ScoredNote
from triax.records.verbs import Encoder, TokenCounter
from triax.retrieval.packing import pack
from triax.retrieval.row_scores import Groups, QueryVectors, RowScores, VectorScores

_DIGITS = 6  # scores alike in so many are equal: rounding in a product decides no tie (R18)
Rows = Int64[np.ndarray, "_"]


@dataclass(frozen=True, slots=True)
class Selection:
    """Which nodes of a tree are shown; the numbers are those of RAPTOR's code.

    mode: "collapsed" takes the best nodes of all layers; "traversal" the best of the top layer,
        then the best of their children, and so on down to the chunks.
    num_nodes: of the collapsed tree.
    num_nodes_per_layer: of the traversal.
    max_tokens: of all that is shown; what does not fit ends it. The released code bounds the
        collapsed tree alone.
    adds_leaves: behind the chunks that were found, chunks below the summaries that were found,
        by their own scores, as far as `num_chunks` and the budget have room. They make the
        ranking one of all chunks that an answer may stand on. RAPTOR shows none: False.
    """

    mode: str = "collapsed"
    num_nodes: int = 10
    num_nodes_per_layer: int = 5
    max_tokens: int = 3500
    adds_leaves: bool = True

    def __post_init__(self) -> None:
        if self.mode not in ("collapsed", "traversal"):
            raise ValueError(f"mode is {self.mode!r}, expected 'collapsed' or 'traversal'")


class Raptor:
    """Ranks the nodes of a tree by their scores; nodes are rows, chunks first, then summaries."""

    reads_triplets = False

    def __init__(
        self,
        tables: TripletTables,
        tree: SummaryTree,
        scores: RowScores,
        counter: TokenCounter,
        selection: Selection = Selection(),
    ) -> None:
        """Takes what was made of an index.

        Args:
            tables: of the index.
            tree: of its chunks.
            scores: of the chunks in row order, and behind them of the tree's summaries.
            counter: counts what is shown.
            selection: the numbers of the method.
        """
        self._tables = tables
        self._summaries = tree.summaries
        self._scores = scores
        self._counter = counter
        self._selection = selection
        self._num_leaves = tables.chunks.num_rows
        rows = {one: row for row, one in enumerate(tables.chunks["id"].to_pylist())}
        self._leaves = [_rows(rows, one.chunk_ids) for one in tree.summaries]
        self._children: list[Rows] = []
        self._top = np.arange(self._num_leaves)
        below = rows
        for layer in range(1, max((one.layer for one in tree.summaries), default=0) + 1):
            places = [place for place, one in enumerate(tree.summaries) if one.layer == layer]
            self._children += [_rows(below, tree.summaries[place].children) for place in places]
            self._top = self._num_leaves + np.array(places)
            below = {tree.summaries[place].id: self._num_leaves + place for place in places}

    def search(self, groups: Groups, num_chunks: int) -> list[Evidence]:
        """At most `num_chunks` chunks a group, and as many nodes as the budget has room for.

        Ties go by chunk id; a summary stands behind a chunk of the same score. An empty group
        finds nothing.
        """
        scores = self._scores.scores(groups)
        return [
            self._found(row, max(0, num_chunks)) if group else Evidence()
            for group, row in zip(groups, scores, strict=True)
        ]

    def _found(self, scores: Float32[np.ndarray, "nodes"], num_chunks: int) -> Evidence:
        selection = self._selection
        if selection.mode == "collapsed":
            order = ranked(scores, np.arange(len(scores)))[: selection.num_nodes]
        else:
            order = self._traversed(scores)
        is_leaf = order < self._num_leaves
        order = order[~is_leaf | (np.cumsum(is_leaf) <= num_chunks)]
        shown, left = self._packed(order, selection.max_tokens)
        leaves = ranked(scores, shown[shown < self._num_leaves])
        summaries = ranked(scores, shown[shown >= self._num_leaves])
        if selection.adds_leaves and len(summaries):
            below = [self._leaves[row - self._num_leaves] for row in summaries.tolist()]
            others = ranked(scores, np.setdiff1d(np.concatenate(below), leaves))
            added, _ = self._packed(others[: num_chunks - len(leaves)], left)
            leaves = np.concatenate([leaves, added])
        return Evidence(
            tuple(
                ScoredChunk(self._tables.chunk(row), float(scores[row])) for row in leaves.tolist()
            ),
            notes=tuple(
                ScoredNote(self._note(row), float(scores[row])) for row in summaries.tolist()
            ),
        )

    def _traversed(self, scores: Float32[np.ndarray, "nodes"]) -> Rows:
        """The best nodes of each layer, the top layer first."""
        found, rows = [], self._top
        while len(rows):
            best = ranked(scores, rows)[: self._selection.num_nodes_per_layer]
            found.append(best)
            places = (best[best >= self._num_leaves] - self._num_leaves).tolist()
            below = [self._children[place] for place in places]
            rows = np.unique(np.concatenate(below)) if below else best[:0]
        return np.concatenate(found) if found else self._top

    def _packed(self, rows: Rows, max_tokens: int) -> tuple[Rows, int]:
        """The first rows that fit, and what is left of the budget."""
        tokens = self._counter.count([self._text(row) for row in rows.tolist()])
        kept = pack(tokens, max_tokens)
        return rows[kept], max_tokens - sum(tokens[place] for place in kept)

    def _text(self, row: int) -> str:
        if row < self._num_leaves:
            return self._tables.chunk(row).passage
        return self._summaries[row - self._num_leaves].text

    def _note(self, row: int) -> Note:
        one = self._summaries[row - self._num_leaves]
        return Note(f"summary:{one.id}", one.text, chunk_ids=one.chunk_ids)


def ranked(scores: Float32[np.ndarray, "nodes"], rows: Rows) -> Rows:
    """Rows by their scores, best first, equal ones by row."""
    return rows[np.lexsort((rows, -np.round(scores[rows], _DIGITS)))]


def open_raptor(
    index: TripletIndex,
    encoder: Encoder,
    tree: SummaryTree,
    counter: TokenCounter,
    **selection: int | bool | str,
) -> Raptor:
    """RAPTOR over an index.

    Args:
        index: with the chunk vectors that the tree was grown from.
        encoder: the one of the index.
        tree: of the index.
        counter: counts what is shown.
        selection: the fields of `Selection`.

    Raises:
        ValueError: the index has no chunk vectors, or was built with another encoder.
    """
    if index.chunk_vectors is None:
        raise ValueError(
            f"{index.folder} has no chunk vectors, which RAPTOR needs; build it with "
            "embeds_chunks=True"
        )
    check_encoder(index, encoder, probes=False)
    vectors = np.concatenate([np.asarray(index.chunk_vectors, np.float32), tree.vectors])
    scores = VectorScores(vectors, QueryVectors(encoder))
    return Raptor(index.tables, tree, scores, counter, Selection(**selection))


def _rows(row_of: dict[str, int], ids: tuple[str, ...]) -> Rows:
    return np.array([row_of[one] for one in ids], np.int64)
