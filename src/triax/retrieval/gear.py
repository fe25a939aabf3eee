"""GeAR's SyncGE: passages lead to triplets, triplets to chains of triplets, chains to passages.

Source: "GeAR: Graph-enhanced Agent for Retrieval-augmented Generation" (Shen et al., 2024, section
3). A base retriever finds passages; a reader says in triplets what they state towards the answer;
each of these is linked to the nearest triplet of the index, from which a diverse beam search goes
on; the passages of the chains are fused with the first ones by rank. There is no released code.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from jaxtyping import Float32

from triax.indexing.entity_graph import build_entity_graph
from triax.indexing.store import TripletIndex, check_encoder
from triax.records.evidence import Evidence, Hit, Note, ScoredChunk, ScoredNote
from triax.records.verbs import Encoder, Retriever
from triax.retrieval.adaptive import encode_groups
from triax.retrieval.fusion import K, fuse
from triax.retrieval.proximal import Proximal, ProximalReader
from triax.retrieval.row_scores import Groups
from triax.retrieval.triplet_beam import Beam, Chain, Neighbours, breadth_first, search_chains


class GearRetriever:
    """Extends what a base retriever finds along chains of triplets.

    The proximal triplets stand in a note of the evidence, the triplets of chains are its hits.
    """

    def __init__(
        self,
        index: TripletIndex,
        encoder: Encoder,
        base: Retriever,
        proximal: ProximalReader,
        num_base: int = 10,
        beam: Beam = Beam(),
        encodes_chains: bool = False,
        k: int = K,
    ) -> None:
        """Derives the neighbours of every triplet from the index.

        Args:
            index: an opened index.
            encoder: the one of the index.
            base: finds the first passages.
            proximal: reads them.
            num_base: passages that are asked of the base retriever, and read.
            beam: the numbers of the beam search.
            encodes_chains: score a chain by the vector of its text, as the paper does, and not by
                the sum of its triplets' vectors: width x neighbours texts a step and question.
            k: of the reciprocal rank fusion.

        Raises:
            ValueError: the index was built with another encoder.
        """
        check_encoder(index, encoder, probes=False)
        self._tables, self._vectors, self._encoder = index.tables, index.vectors, encoder
        self._base, self._proximal, self._num_base = base, proximal, num_base
        self._beam, self._encodes, self._k = beam, encodes_chains, k
        self._neighbours = Neighbours(build_entity_graph(index.tables))

    def search(self, groups: Groups, num_chunks: int) -> list[Evidence]:
        """The `num_chunks` best chunks of each group after fusion; an empty group finds nothing."""
        bases = self._base.search(groups, max(self._num_base, num_chunks))
        proximal = self._proximal.read(groups, bases)
        linked = iter(self.link([text for one in proximal for text in one.texts]))
        queries = encode_groups(self._encoder, [[" ".join(group)] for group in groups])
        found = []
        for group, query, base, read in zip(groups, queries, bases, proximal, strict=True):
            starts = [next(linked) for _ in read.texts]
            if not group:
                found.append(Evidence())
                continue
            encode = self._encoded if self._encodes else None
            chains = search_chains(
                query[0], starts, self._vectors, self._neighbours, self._beam, encode
            )
            found.append(self._fused(base, read, chains, num_chunks))
        return found

    def link(self, texts: Sequence[str]) -> list[int]:
        """The proposition row that is nearest to each text, equal ones by row."""
        if not texts or not len(self._vectors):
            return []
        distinct = list(dict.fromkeys(texts))
        queries = np.asarray(self._encoder.encode(distinct, "query"), np.float32)
        best = dict(zip(distinct, (queries @ self._vectors.astype(np.float32).T).argmax(axis=1)))
        return [int(best[text]) for text in texts]

    def passages(self, texts: Sequence[str]) -> tuple[ScoredChunk, ...]:
        """The chunks of the triplets that texts are linked to, in their order."""
        return self._chunks(list(dict.fromkeys(self.link(texts))))

    def _fused(
        self,
        base: Evidence,
        read: Proximal,
        chains: Sequence[tuple[Chain, float]],
        num_chunks: int,
    ) -> Evidence:
        rows = breadth_first([chain for chain, _ in chains])
        chunks = fuse([base.chunks, self._chunks(rows)], self._k)[:num_chunks]
        entered = {one.chunk.id for one in chunks}
        score_of = {row: score for chain, score in reversed(chains) for row in chain}
        hits = tuple(
            replace(hit, chunk_ids=tuple(one for one in hit.chunk_ids if one in entered))
            for hit in (self._hit(row, score_of[row]) for row in rows)
        )
        notes = base.notes
        if read.texts and read.usage.calls:
            # What a model wrote is new; what was chosen among the index's triplets is not.
            ids = tuple(one.chunk.id for one in base.chunks)
            note = Note("proximal", "\n".join(read.texts), "What the passages say", ids)
            notes = (ScoredNote(note, 1.0), *notes)
        return Evidence(chunks, hits, notes, base.usage + read.usage)

    def _hit(self, row: int, score: float) -> Hit:
        proposition = self._tables.proposition(row)
        return Hit(proposition, score, proposition.chunk_ids)

    def _chunks(self, rows: Sequence[int]) -> tuple[ScoredChunk, ...]:
        """The chunks of propositions, in their order, each once; the score is 1 / rank."""
        ordered = dict.fromkeys(
            chunk for row in rows for chunk in self._tables.sources.of(row).tolist()
        )
        return tuple(
            ScoredChunk(self._tables.chunk(chunk), 1 / rank)
            for rank, chunk in enumerate(ordered, 1)
        )

    def _encoded(self, chains: Sequence[Chain]) -> Float32[np.ndarray, "chains dimension"]:
        texts = self._tables.propositions["text"]
        said = [". ".join(texts[row].as_py() for row in chain) for chain in chains]
        return np.asarray(self._encoder.encode(said, "passage"), np.float32)
