"""T2RAG's adaptive retrieval: as many propositions as it takes to reach k chunks (section 3.3)."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float32

from triax.indexing.search import EngineFactory, search
from triax.indexing.small import default_engine
from triax.indexing.store import TripletIndex, check_encoder
from triax.records.evidence import Evidence
from triax.records.verbs import Encoder
from triax.retrieval.found import triplet_evidence


class AdaptiveRetriever:
    """Embeds queries and walks over the propositions of an index.

    All query texts of a question share one pool: a proposition's score is its best over them.
    """

    def __init__(
        self, index: TripletIndex, encoder: Encoder, engine: EngineFactory = default_engine
    ) -> None:
        """Makes the engine from the index's vectors and sources.

        Raises:
            ValueError: the index was built with another encoder.
        """
        check_encoder(index, encoder, probes=False)
        self._index = index
        self._encoder = encoder
        self._engine = engine(index.vectors, index.tables.sources)

    def search(self, groups: Sequence[Sequence[str]], num_chunks: int) -> list[Evidence]:
        """Finds `num_chunks` chunks for each group, or fewer where no more score above 0.

        All queries are embedded in one call. An empty group, or an empty index, finds nothing.
        """
        index = self._index
        vectors = encode_groups(self._encoder, groups)
        found = search(index.vectors, index.tables.sources, vectors, num_chunks, self._engine)
        return [triplet_evidence(index.tables, walk) for walk in found]


def encode_groups(
    encoder: Encoder, groups: Sequence[Sequence[str]]
) -> list[Float32[np.ndarray, "_ dimension"]]:
    """Embeds the queries of all groups in one call, in which a repeated text stands once."""
    place: dict[str, int] = {}
    for group in groups:
        for text in group:
            place.setdefault(text, len(place))
    if not place:
        return [np.zeros((0, encoder.dimension), np.float32) for _ in groups]
    rows = np.asarray(encoder.encode(list(place), "query"), np.float32)
    return [rows[[place[text] for text in dict.fromkeys(group)]] for group in groups]
