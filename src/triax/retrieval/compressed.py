"""Any retriever, asked for much and compressed to a budget of tokens."""

from collections.abc import Sequence
from dataclasses import dataclass

from triax.records.evidence import Evidence
from triax.records.verbs import Compressor, Retriever


@dataclass(frozen=True, slots=True)
class CompressedRetriever:
    """Fetches many chunks, of which the compressor's budget, not their number, decides."""

    retriever: Retriever
    compressor: Compressor
    num_fetched: int = 50

    def search(self, groups: Sequence[Sequence[str]], num_chunks: int) -> list[Evidence]:
        """What stays of the `num_fetched` best chunks of each group, or `num_chunks` if more."""
        fetched = self.retriever.search(groups, max(num_chunks, self.num_fetched))
        return self.compressor.compress(groups, fetched)
