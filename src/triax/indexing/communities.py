"""Communities of entities at several levels, by hierarchical Leiden, as in GraphRAG.

A community of `max_cluster_size` entities or more is divided by Leiden once more, and so on. The
recursion ends (R13): a part is always smaller than what it was divided from, and what modularity
does not divide, such as a star or a clique, stays whole. It is not cut into halves, which would
part a hub from its facts; a report's budget bounds what is read of it.

Sources: "From Local to Global" (Edge et al., 2024, section 3.1.4); "From Louvain to Leiden" (Traag
et al., 2019); the numbers are those of GraphRAG 3.1.2.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Bool, Int32, Int64

from triax.indexing.entity_graph import EntityGraph

if TYPE_CHECKING:
    from scipy.sparse import csr_array

# Level, parent and members of each cluster, by the library's numbers.
_Found = dict[int, tuple[int, int | None, list[int]]]


@dataclass(frozen=True, slots=True)
class Clustering:
    """How entities are clustered.

    max_cluster_size: communities of so many entities, or more, are divided.
    resolution: of modularity; higher gives more and smaller communities.
    randomness: of Leiden's refinement.
    seed: of Leiden; the same graph and seed give the same communities.
    only_largest: cluster the largest connected component only and drop all others, as GraphRAG
        does (`use_lcc`). On real triplets a third of the entities is outside of it (R14).
    """

    max_cluster_size: int = 10
    resolution: float = 1.0
    randomness: float = 0.001
    seed: int = 0xDEADBEEF
    only_largest: bool = False


@dataclass(frozen=True, slots=True)
class Communities:
    """A hierarchy of communities, in the order of their levels, then of their first entities.

    levels: 0 for the widest; they partition the clustered entities.
    parents: the community that each was divided from, -1 at level 0.
    members: [communities, entities], 1 where the entity belongs to it.
    """

    levels: Int32[np.ndarray, "communities"]
    parents: Int32[np.ndarray, "communities"]
    members: "csr_array"

    def labels(self, level: int) -> Int64[np.ndarray, "entities"]:
        """The community of each entity at a level, -1 where it has none there."""
        found = np.full(self.members.shape[1], -1, np.int64)
        for row in np.flatnonzero(self.levels == level).tolist():
            start, end = self.members.indptr[row : row + 2]
            found[self.members.indices[start:end]] = row
        return found


def find_communities(graph: EntityGraph, clustering: Clustering = Clustering()) -> Communities:
    """Clusters the entities of a graph by the weights of its relations, all components (R14).

    An entity without a relation is a community by itself, at level 0.

    Raises:
        ImportError: graspologic-native is not installed.
    """
    kept = _largest(graph) if clustering.only_largest else np.ones(len(graph.entities), bool)
    rows = np.flatnonzero(kept[graph.heads]) if len(graph.heads) else np.zeros(0, np.int64)
    edges = [
        (str(head), str(tail), float(weight))
        for head, tail, weight in zip(graph.heads[rows], graph.tails[rows], graph.weights[rows])
    ]
    found = _leiden(edges, clustering) if edges else {}
    alone = np.flatnonzero(kept & (graph.degrees == 0)).tolist()
    # Leiden's own numbers are not negative.
    found |= {-1 - entity: (0, None, [entity]) for entity in alone}
    return _ordered(found, len(graph.entities))


def _leiden(edges: Sequence[tuple[str, str, float]], clustering: Clustering) -> _Found:
    try:
        from graspologic_native import hierarchical_leiden
    except ImportError as error:
        raise ImportError(
            f"communities are found by graspologic-native, which cannot be imported ({error}); "
            "pip install 'triax[systems]'"
        ) from error
    found: _Found = {}
    for one in hierarchical_leiden(
        edges=list(edges),
        resolution=clustering.resolution,
        randomness=clustering.randomness,
        iterations=1,
        use_modularity=True,
        max_cluster_size=clustering.max_cluster_size,
        seed=clustering.seed,
    ):
        cluster = found.setdefault(one.cluster, (one.level, one.parent_cluster, []))
        cluster[2].append(int(one.node))
    return found


def _ordered(found: _Found, num_entities: int) -> Communities:
    from scipy.sparse import csr_array

    order = sorted(found, key=lambda number: (found[number][0], min(found[number][2])))
    place = {number: row for row, number in enumerate(order)}
    parents = [found[number][1] for number in order]
    members = [sorted(found[number][2]) for number in order]
    indptr = np.cumsum([0, *map(len, members)])
    indices = np.array([one for row in members for one in row], np.int64)
    return Communities(
        np.array([found[number][0] for number in order], np.int32),
        np.array([-1 if one is None else place[one] for one in parents], np.int32),
        csr_array(
            (np.ones(len(indices), np.float32), indices, indptr), shape=(len(order), num_entities)
        ),
    )


def _largest(graph: EntityGraph) -> Bool[np.ndarray, "entities"]:
    """Whether each entity is in the component of most entities, the first of equal ones."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    count = len(graph.entities)
    edges = csr_array((graph.weights, (graph.heads, graph.tails)), shape=(count, count))
    _, labels = connected_components(edges, directed=False)
    return labels == np.argmax(np.bincount(labels)) if count else np.zeros(0, bool)
