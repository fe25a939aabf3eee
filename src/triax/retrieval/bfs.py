"""Hop numbers of many questions at once: breadth-first search as boolean sparse products.

One product of the neighbours [nodes, nodes] with a frontier [nodes, questions] takes the next hop
of all questions together. What is held is one hop number a node and question.
"""

from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Bool, Int16, Integer

if TYPE_CHECKING:
    from scipy.sparse import csr_array


def undirected(
    ours: Integer[np.ndarray, "edges"], theirs: Integer[np.ndarray, "edges"], num_nodes: int
) -> "csr_array":
    """Which nodes are neighbours, in both directions: a boolean matrix [nodes, nodes]."""
    from scipy.sparse import csr_array

    rows, columns = np.concatenate([ours, theirs]), np.concatenate([theirs, ours])
    return csr_array((np.ones(len(rows), bool), (rows, columns)), shape=(num_nodes, num_nodes))


def hops(
    neighbours: "csr_array",
    seeds: Bool[np.ndarray, "nodes questions"],
    max_hops: int,
    allowed: Bool[np.ndarray, "nodes questions"] | None = None,
) -> Int16[np.ndarray, "nodes questions"]:
    """The number of steps from the nearest seed to each node; -1 where there is no way.

    Args:
        neighbours: of `undirected`; no weights.
        seeds: where each question starts; they have hop 0.
        max_hops: how far to go; 0 reaches the seeds alone, less than 0 nothing.
        allowed: the nodes of each question's own part of the graph, seeds too; None allows all.
    """
    from scipy.sparse import csr_array

    found = np.full(seeds.shape, -1, np.int16)
    rows, columns = np.nonzero(seeds)
    for hop in range(max_hops + 1):
        is_new = found[rows, columns] < 0
        if allowed is not None:
            is_new &= allowed[rows, columns]
        rows, columns = rows[is_new], columns[is_new]
        found[rows, columns] = hop
        if hop == max_hops or not len(rows):
            break
        frontier = csr_array((np.ones(len(rows), bool), (rows, columns)), shape=seeds.shape)
        rows, columns = (neighbours @ frontier).nonzero()
    return found
