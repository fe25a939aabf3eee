"""Triplets by the trained tagger: no language model, some passages a second on one core."""

from collections.abc import Sequence
from typing import Any

from triax.models.trained_tagger import TrainedTagger
from triax.records.documents import Chunk
from triax.records.triplets import Extraction


class TrainedExtractor:
    """Reads chunks with a `TrainedTagger`; its confidence stands in each triplet.

    A chunk in which nothing is found is `empty`. Nothing is loaded before the first chunk.
    """

    name = "trained"

    def __init__(
        self,
        adapter: str = "extractor",
        dtype: str = "float32",
        batch_tokens: int | None = None,
        pair_threshold: float | None = None,
        relation_threshold: float | None = None,
    ):
        """Takes the settings; see `TrainedTagger`."""
        self._tagger = TrainedTagger(
            adapter, batch_tokens, dtype, pair_threshold, relation_threshold
        )

    @property
    def config(self) -> dict[str, Any]:
        """What decides the triplets, for the manifest of a run (R28)."""
        return self._tagger.fingerprint

    async def extract(self, chunks: Sequence[Chunk]) -> list[Extraction]:
        """One extraction a chunk, in order, the most confident triplets first."""
        found = self._tagger.read([(chunk.title, chunk.text) for chunk in chunks])
        return [
            Extraction(chunk.id, triplets)
            if triplets
            else Extraction(chunk.id, (), status="empty", reason="no triplet is likely enough")
            for chunk, triplets in zip(chunks, found, strict=True)
        ]
