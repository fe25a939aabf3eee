"""Diverse triplet beam search: chains of triplets that share a name, the nearest to a question.

Source: GeAR (Shen et al., 2024, section 3.2, algorithm 1), which encodes each chain anew; here its
vector is the normalised sum of those of its triplets, unless `encodes_chains` asks for the former.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Float32, Int64

from triax.indexing.entity_graph import EntityGraph

Chain = tuple[int, ...]
# Vectors of chains, one row each.
ChainVectors = Callable[[Sequence[Chain]], Float32[np.ndarray, "chains dimension"]]


@dataclass(frozen=True, slots=True)
class Beam:
    """The numbers of the search. GeAR's own values could not be checked; these are ours.

    width: chains that are kept at each step (b).
    length: triplets of a chain (l).
    gamma: the n-th best extension of a chain counts exp(-min(n, gamma) / gamma) of its score, so
        that the kept ones do not all come from one chain.
    max_neighbours: extensions that are tried of a chain, the nearest to the question: a triplet of
        a name that is everywhere has very many.
    """

    width: int = 10
    length: int = 2
    gamma: float = 2.0
    max_neighbours: int = 200

    def __post_init__(self) -> None:
        if min(self.width, self.length, self.max_neighbours) < 1 or self.gamma <= 0:
            raise ValueError(f"{self} has a number that is not above 0; give each at least 1")


class Neighbours:
    """The propositions that share a subject or object with another."""

    def __init__(self, graph: EntityGraph) -> None:
        """Takes the graph of the index."""
        self._members = graph.mentions.tocsr()
        self._entities = graph.mentions.T.tocsr()

    def of(self, row: int) -> Int64[np.ndarray, "neighbours"]:
        """The rows of one proposition's neighbours, ascending, without itself."""
        found = [self._row(self._members, one) for one in self._row(self._entities, row).tolist()]
        rows = np.unique(np.concatenate([np.zeros(0, np.int64), *found])).astype(np.int64)
        return rows[rows != row]

    @staticmethod
    def _row(matrix, row: int) -> np.ndarray:
        return matrix.indices[matrix.indptr[row] : matrix.indptr[row + 1]]


def search_chains(
    query: Float[np.ndarray, "dimension"],
    starts: Sequence[int],
    vectors: Float[np.ndarray, "propositions dimension"],
    neighbours: Neighbours,
    beam: Beam = Beam(),
    chain_vectors: ChainVectors | None = None,
) -> list[tuple[Chain, float]]:
    """The best chains for one question, best first, with their scores.

    Args:
        query: its vector, of length 1.
        starts: proposition rows that chains may begin with.
        vectors: of all propositions, of length 1.
        neighbours: of the same propositions.
        beam: the numbers of the search.
        chain_vectors: encodes chains; None takes the normalised sums.

    Returns:
        At most `width` chains of at most `length` rows; a chain that cannot be extended ends
        early. A proposition stands in one chain only, equal scores are in order of rows, and what
        scores 0 or less is left out.
    """
    encode = chain_vectors or (lambda chains: _sums(chains, vectors))
    first = [(row,) for row in sorted({int(row) for row in starts})]
    kept = _best(first, _scores(first, query, encode), beam.width)
    seen = {row for chain, _ in kept for row in chain}
    for _ in range(beam.length - 1):
        grown: list[tuple[Chain, float]] = []
        for chain, score in kept:
            rows = neighbours.of(chain[-1])
            rows = rows[~np.isin(rows, np.fromiter(seen, np.int64))]
            if len(rows) > beam.max_neighbours:
                near = np.lexsort((rows, -(vectors[rows].astype(np.float32) @ query)))
                rows = np.sort(rows[near[: beam.max_neighbours]])
            longer = [(*chain, row) for row in rows.tolist()]
            found = _best(longer, _scores(longer, query, encode), beam.width)
            discount = np.exp(-np.minimum(np.arange(1, len(found) + 1), beam.gamma) / beam.gamma)
            grown += [(one, value * d) for (one, value), d in zip(found, discount.tolist())]
            if not found:
                grown.append((chain, score))
        kept = _without_repeats(grown, beam.width)
        seen |= {row for chain, _ in kept for row in chain}
    return kept


def breadth_first(chains: Sequence[Chain]) -> list[int]:
    """The rows of chains: first all first ones, then all second ones; each once."""
    longest = max(map(len, chains), default=0)
    rows = (chain[place] for place in range(longest) for chain in chains if place < len(chain))
    return list(dict.fromkeys(rows))


def _without_repeats(grown: Sequence[tuple[Chain, float]], width: int) -> list[tuple[Chain, float]]:
    """The best chains; of two that end in the same proposition only the better."""
    ends: set[int] = set()
    kept = []
    for chain, score in sorted(grown, key=lambda one: (-one[1], one[0])):
        if chain[-1] not in ends and len(kept) < width:
            ends.add(chain[-1])
            kept.append((chain, score))
    return kept


def _best(
    chains: Sequence[Chain], scores: Float32[np.ndarray, "chains"], count: int
) -> list[tuple[Chain, float]]:
    order = sorted(range(len(chains)), key=lambda n: (-round(float(scores[n]), 6), chains[n]))
    return [(chains[n], float(scores[n])) for n in order[:count] if scores[n] > 0]


def _scores(
    chains: Sequence[Chain], query: np.ndarray, encode: ChainVectors
) -> Float32[np.ndarray, "chains"]:
    if not chains:
        return np.zeros(0, np.float32)
    return np.asarray(encode(chains) @ np.asarray(query, np.float32), np.float32)


def _sums(
    chains: Sequence[Chain], vectors: Float[np.ndarray, "propositions dimension"]
) -> Float32[np.ndarray, "chains dimension"]:
    found = np.stack([vectors[list(chain)].astype(np.float32).sum(axis=0) for chain in chains])
    return found / np.maximum(np.linalg.norm(found, axis=1, keepdims=True), 1e-12)
