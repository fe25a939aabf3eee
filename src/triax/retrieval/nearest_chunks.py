"""Compression by vectors: the texts nearest to the question, until the budget is full.

The stronger control of the graph walk, from the revision of "The reasoning bottleneck" (Zarinkia
et al., 2026): every chunk and every other text of the context by its cosine with the question.
There the order of the context is restored at the end; here the nearest stand first, since evidence
is best first everywhere.
"""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float32

from triax.indexing.store import TripletIndex, check_encoder
from triax.indexing.walk import exact_scores
from triax.records.evidence import Evidence
from triax.records.verbs import Encoder
from triax.retrieval.adaptive import encode_groups
from triax.retrieval.packing import pack
from triax.retrieval.shown import Piece, ShownTokens, keep, pieces


class NearestChunks:
    """Keeps the chunks, notes and propositions with the highest dot product with the queries."""

    reads_triplets = False

    def __init__(
        self,
        index: TripletIndex,
        encoder: Encoder,
        shown: ShownTokens,
        max_tokens: int = 4000,
        skips: bool = True,
    ) -> None:
        """Takes the vectors of an index; a text that is not in it is embedded when it is met.

        Args:
            index: where the evidence comes from.
            encoder: the one of the index.
            shown: counts what the reader is shown.
            max_tokens: the budget of one evidence.
            skips: go on after a text that does not fit (see `packing.pack`).

        Raises:
            ValueError: the index was built with another encoder.
        """
        check_encoder(index, encoder, probes=False)
        self._index = index
        self._encoder = encoder
        self._shown = shown
        self._max_tokens = max_tokens
        self._skips = skips
        self._chunk_rows = _rows(index.tables.chunks["id"].to_pylist())
        self._proposition_rows = _rows(index.tables.propositions["id"].to_pylist())

    def compress(
        self, groups: Sequence[Sequence[str]], evidences: Sequence[Evidence]
    ) -> list[Evidence]:
        """The nearest texts of each evidence within `max_tokens`, ties in the order as found.

        A text is as near as it is to the nearest query of its group; without a query all are
        equally near.
        """
        found = []
        sizes = self._shown.sizes(evidences)
        queries = encode_groups(self._encoder, groups)
        vectors = self._vectors(evidences, sizes)
        for evidence, size, query, rows in zip(evidences, sizes, queries, vectors, strict=True):
            nearness = exact_scores(rows, query) if len(query) else np.zeros(len(rows))
            is_shown = [kind in self._shown.kinds for kind, _ in size]
            # First what costs nothing: it stays, also where the budget ends everything.
            places = np.lexsort((np.arange(len(rows)), -nearness, is_shown))
            order = [list(size)[place] for place in places]
            room = self._max_tokens - self._shown.headings(evidence)
            kept = pack([size[piece] for piece in order], room, skips=self._skips)
            found.append(keep(evidence, [order[place] for place in kept]))
        return found

    def _vectors(
        self, evidences: Sequence[Evidence], sizes: Sequence[dict[Piece, int]]
    ) -> list[Float32[np.ndarray, "_ dimension"]]:
        """One row a text; those without a row in the index are embedded in one call."""
        held = []
        for evidence, size in zip(evidences, sizes, strict=True):
            texts = pieces(evidence)
            rows = [self._held(evidence, piece) for piece in size]
            held.append([texts[p] if row is None else row for p, row in zip(size, rows)])
        new = list(dict.fromkeys(one for row in held for one in row if isinstance(one, str)))
        encoded = self._encoder.encode(new, "passage") if new else ()
        row_of = dict(zip(new, encoded, strict=True))
        empty = np.zeros((0, self._encoder.dimension), np.float32)
        return [
            np.array([row_of[one] if isinstance(one, str) else one for one in row], np.float32)
            if row
            else empty
            for row in held
        ]

    def _held(self, evidence: Evidence, piece: Piece) -> np.ndarray | None:
        """The vector that the index has of a text."""
        kind, place = piece
        if kind == "chunks" and self._index.chunk_vectors is not None:
            row = self._chunk_rows.get(evidence.chunks[place].chunk.id)
            return None if row is None else self._index.chunk_vectors[row]
        if kind == "hits":
            row = self._proposition_rows.get(evidence.hits[place].proposition.id)
            return None if row is None else self._index.vectors[row]
        return None


def _rows(ids: Sequence[str]) -> dict[str, int]:
    return {name: row for row, name in enumerate(ids)}
