"""Dense retrieval of chunks: the nearest vectors, as in DPR (Karpukhin et al., 2020)."""

from collections.abc import Sequence

from triax.indexing.search import EngineFactory, search
from triax.indexing.small import default_engine
from triax.indexing.store import TripletIndex, check_encoder
from triax.indexing.tables import Sources
from triax.records.evidence import Evidence
from triax.records.verbs import Encoder
from triax.retrieval.adaptive import encode_groups
from triax.retrieval.found import chunk_evidence


class DenseRetriever:
    """Ranks chunks by the dot product of their passage with a question's queries."""

    reads_triplets = False

    def __init__(
        self, index: TripletIndex, encoder: Encoder, engine: EngineFactory = default_engine
    ) -> None:
        """Makes the engine from the index's chunk vectors.

        Raises:
            ValueError: the index has no chunk vectors, or was built with another encoder.
        """
        if index.chunk_vectors is None:
            raise ValueError(
                f"{index.folder} has no chunk vectors, which dense retrieval needs; build it with "
                "embeds_chunks=True"
            )
        check_encoder(index, encoder, probes=False)
        self._tables = index.tables
        self._vectors = index.chunk_vectors
        self._encoder = encoder
        # To search chunks is to walk over rows that are each their own source.
        self._sources = Sources.identity(len(index.chunk_vectors))
        self._engine = engine(index.chunk_vectors, self._sources)

    def search(self, groups: Sequence[Sequence[str]], num_chunks: int) -> list[Evidence]:
        """The `num_chunks` best chunks of each group whatever their scores, ties by chunk id."""
        vectors = encode_groups(self._encoder, groups)
        found = search(
            self._vectors, self._sources, vectors, num_chunks, self._engine, floor=-float("inf")
        )
        return [chunk_evidence(self._tables, walk) for walk in found]
