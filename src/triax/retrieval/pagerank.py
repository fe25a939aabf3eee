"""Personalised PageRank of many questions at once, on all devices of a mesh.

The vector of a question solves `x = a M x + (1 - a) v`, where v is its reset vector (sum 1), a the
damping and M the weights of the edges, divided by the sum of weights at the node that they leave.
Mass at a node without edges goes to the reset vector (R12); the solution is then that of the
equation above, scaled to sum 1, so that such nodes need no step of their own.

Two things make it fast. First, an undirected graph's M has a real spectrum in [-1, 1], so the power
iteration can be accelerated by Chebyshev's polynomials (Golub and Varga, 1961): the error falls by
0.268 a step at a damping of 0.5, not by 0.5, and by 0.556 at 0.85, not by 0.85. Second, edges are
not scattered one by one: they are sorted by target and cut into strips of up to 16 for each node,
of a few fixed widths, which are gathered and added without a conflict; only nodes of more edges
need a segment sum, over their strips.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, PartitionSpec
from jaxtyping import Array, Float, Float32, Int32, Integer

from triax.indexing.search import power_of_two
from triax.models.memory import graph_memory, report
from triax.models.mesh import current_mesh, replicated, rows_spread

_WIDTHS = (1, 2, 3, 4, 6, 8, 12, 16)
_EVERYWHERE = PartitionSpec()
TOLERANCE = 1e-5

_Strip = tuple[Int32[np.ndarray, "_ _"], Float32[np.ndarray, "_ _"]]


@dataclass(frozen=True, slots=True)
class Layout:
    """The edges into each node as strips; nodes are renumbered to the order of their results.

    strips: positions of the sources, and weights, of strips that are a whole node's.
    parts: the same of strips that are pieces of larger nodes, and the larger node of each.
    num_large: how many larger nodes there are, padding included.
    num_loose: how many nodes have no edge, padding included.
    positions: where each node stands among the results.
    nodes: the node at each position, or `num_nodes` where there is padding.
    """

    strips: tuple[_Strip, ...]
    parts: _Strip
    owners: Int32[np.ndarray, "pieces"]
    num_large: int
    num_loose: int
    positions: Int32[np.ndarray, "nodes"]
    nodes: Int32[np.ndarray, "positions"]


class PageRank:
    """A graph on the devices, ready for reset vectors.

    Questions are spread over a mesh and taken in tiles. A device holds the edges once (8 bytes
    each and at most half as much padding: `edge_bytes`) and, for a tile, about five arrays of
    nodes x questions floats: 100,000 nodes and 64 questions are 130 MB. XLA fuses the gathers, so
    no array of edges x questions is made (5.2 such arrays in all on CPU, by its own account).
    """

    def __init__(
        self,
        sources: Integer[np.ndarray, "edges"],
        targets: Integer[np.ndarray, "edges"],
        weights: Float[np.ndarray, "edges"],
        num_nodes: int,
        *,
        tile: int | None = None,
        mesh: Mesh | None = None,
    ) -> None:
        """Takes an undirected graph.

        Args:
            sources, targets: every edge in both directions, in any order.
            weights: positive, the same in both directions.
            num_nodes: nodes without an edge count too.
            tile: questions at once on each device; 32 on CPU, where a tile should fit into the
                cache, else 256.
            mesh: questions are spread over all of its axes; the current one if None.

        Raises:
            ValueError: a weight is not positive, or the graph is not symmetric.
        """
        _refuse_asymmetric(sources, targets, weights, num_nodes)
        self._mesh = current_mesh() if mesh is None else mesh
        self._tile = tile or (32 if jax.default_backend() == "cpu" else 256)
        self._num_nodes = num_nodes
        estimate = graph_memory(len(sources), num_nodes, self._tile)
        report(f"PageRank over {num_nodes:,} nodes", estimate, self._mesh)
        layout = cut_strips(sources, targets, weights, num_nodes)
        self._positions = layout.positions
        self._num_large, self._num_loose = layout.num_large, layout.num_loose
        edges = (layout.strips, layout.parts, layout.owners, layout.nodes)
        self._edges = jax.device_put(edges, replicated(self._mesh))
        self.edge_bytes = sum(one.nbytes for one in jax.tree.leaves(edges))

    def __call__(
        self,
        reset: Float[np.ndarray, "batch nodes"],
        damping: float = 0.5,
        num_iterations: int | None = None,
        *,
        first: int = 0,
        stable_top: int | None = None,
    ) -> Float32[np.ndarray, "batch ranked"]:
        """The PageRank vectors of a batch of questions, each of sum 1.

        Args:
            reset: not negative; need not sum to 1. A row of zeros gives zeros.
            damping: the probability to go on along an edge, in [0, 1).
            num_iterations: None takes as many as an error of 1e-5 needs, by
                `iterations_for(damping)`.
            first: scores are returned from this node on: the chunks of a graph stand last.
            stable_top: also stop as soon as the first so many of the returned nodes keep their
                order over two iterations, for all questions of a tile.

        Raises:
            ValueError: damping or the reset is out of range.
        """
        if not 0 <= damping < 1:
            raise ValueError(f"damping is {damping}, expected at least 0 and below 1")
        if reset.shape[1] != self._num_nodes:
            raise ValueError(f"reset has {reset.shape[1]} columns for {self._num_nodes} nodes")
        if reset.size and not (reset.min() >= 0 and reset.max() < np.inf):
            raise ValueError("the reset has negative or infinite entries; clip it first")
        steps = iterations_for(damping) if num_iterations is None else num_iterations
        ranked = self._num_nodes - first
        result = np.zeros((len(reset), ranked), np.float32)
        # Too few nodes to be ordered are always in order: then only the error decides.
        top = min(stable_top or 0, ranked)
        size = power_of_two(min(max(1, len(reset)), self._tile)) * self._mesh.size
        waiting = []
        for start in range(0, len(reset), size):
            part = np.asarray(reset[start : start + size], np.float32)
            if len(part) < size:
                part = np.concatenate([part, np.zeros((size - len(part), part.shape[1]), "f")])
            found = _solve(
                *self._edges,
                jax.device_put(part, rows_spread(self._mesh)),
                self._positions[first:],
                damping,
                steps,
                self._num_large,
                self._num_loose,
                top,
                self._mesh,
            )
            waiting.append((start, found))
            # One tile is computed while the one before is fetched, and no more are in memory.
            if len(waiting) > 1:
                _fetch(result, *waiting.pop(0))
        for one in waiting:
            _fetch(result, *one)
        return result


def personalised_pagerank(
    sources: Integer[np.ndarray, "edges"],
    targets: Integer[np.ndarray, "edges"],
    weights: Float[np.ndarray, "edges"],
    reset: Float[np.ndarray, "batch nodes"],
    damping: float = 0.5,
    num_iterations: int | None = None,
) -> Float32[np.ndarray, "batch nodes"]:
    """`PageRank` for one call: see there for the arguments."""
    return PageRank(sources, targets, weights, reset.shape[1])(reset, damping, num_iterations)


def iterations_for(damping: float, tolerance: float = TOLERANCE) -> int:
    """How many iterations bring the error below `tolerance`: 10 at a damping of 0.5, 21 at 0.85.

    The bound `2 r^k` with `r = a / (1 + sqrt(1 - a^2))` holds for the error relative to that of
    the reset vector, in the norm that weighs each node by 1 / the weight of its edges.
    """
    if damping == 0:
        return 1
    rate = damping / (1 + math.sqrt(1 - damping**2))
    return math.ceil(math.log(tolerance / 2) / math.log(rate))


def cut_strips(
    sources: Integer[np.ndarray, "edges"],
    targets: Integer[np.ndarray, "edges"],
    weights: Float[np.ndarray, "edges"],
    num_nodes: int,
    widths: Sequence[int] = _WIDTHS,
) -> Layout:
    """Sorts edges by target and cuts them into strips; counts are padded to few sizes."""
    leaving = np.bincount(sources, weights, minlength=num_nodes)
    shares = (weights / leaving[sources]).astype(np.float32)
    order = np.lexsort((sources, targets))
    sources, shares = sources[order], shares[order]
    degrees = np.bincount(targets, minlength=num_nodes)
    starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(degrees)])
    positions = np.zeros(num_nodes, np.int64)
    blocks, position, low = [], 0, 0
    for width in widths:
        nodes = np.flatnonzero((degrees > low) & (degrees <= width))
        low = width
        if len(nodes):
            positions[nodes] = position + np.arange(len(nodes))
            rows = _bucket(len(nodes))
            position += rows
            blocks.append(_strips(starts[nodes], degrees[nodes], rows, width))
    large = np.flatnonzero(degrees > low)
    positions[large] = position + np.arange(len(large))
    num_large = _bucket(len(large))
    position += num_large
    pieces = -(-degrees[large] // low)
    owner = np.repeat(np.arange(len(large)), pieces)
    piece = np.arange(len(owner)) - np.repeat(np.cumsum(pieces) - pieces, pieces)
    lengths = np.minimum(low, degrees[large][owner] - piece * low)
    rows = _bucket(len(owner))
    parts = _strips(starts[large][owner] + piece * low, lengths, rows, low)
    owners = np.full(rows, max(0, num_large - 1), np.int32)
    owners[: len(owner)] = owner
    loose = np.flatnonzero(degrees == 0)
    positions[loose] = position + np.arange(len(loose))
    nodes = np.full(position + _bucket(len(loose)), num_nodes, np.int32)
    nodes[positions] = np.arange(num_nodes)

    def filled(strip: tuple[np.ndarray, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        edges, is_edge = strip
        if not len(sources):
            return edges.astype(np.int32), is_edge.astype(np.float32)
        # What pads a strip reads node 0 with a weight of 0.
        found = np.where(is_edge, positions[sources[edges]], 0)
        return found.astype(np.int32), np.where(is_edge, shares[edges], 0).astype(np.float32)

    return Layout(
        tuple(filled(block) for block in blocks),
        filled(parts),
        owners,
        num_large,
        _bucket(len(loose)),
        positions.astype(np.int32),
        nodes,
    )


def _strips(
    starts: np.ndarray, lengths: np.ndarray, rows: int, width: int
) -> tuple[np.ndarray, np.ndarray]:
    """Numbers of edges [rows, width], and which of them are there."""
    edges, is_edge = np.zeros((rows, width), np.int64), np.zeros((rows, width), bool)
    is_edge[: len(starts)] = np.arange(width) < lengths[:, None]
    edges[: len(starts)] = starts[:, None] + np.arange(width)
    return np.where(is_edge, edges, 0), is_edge


def _bucket(count: int) -> int:
    """A size that is at least `count`: eight sizes an octave waste an eighth at most."""
    step = max(8, power_of_two(count) // 16)
    return -(-count // step) * step


def _refuse_asymmetric(
    sources: np.ndarray, targets: np.ndarray, weights: np.ndarray, num_nodes: int
) -> None:
    if (weights <= 0).any() or not np.isfinite(weights).all():
        raise ValueError("a weight is not positive and finite; leave such edges out")
    there = np.lexsort((targets, sources))
    back = np.lexsort((sources, targets))
    if not (
        (sources[there] == targets[back]).all()
        and (targets[there] == sources[back]).all()
        and np.allclose(weights[there], weights[back])
    ):
        raise ValueError(
            f"the {len(sources)} edges between {num_nodes} nodes are not the same in both "
            "directions, which this solver needs; add the missing ones"
        )


def _fetch(result: np.ndarray, start: int, found: Array) -> None:
    part = result[start : start + len(found)]
    part[:] = np.asarray(found)[: len(part)]


@partial(jax.jit, static_argnames=("num_large", "num_loose", "top", "mesh"))
def _solve(
    strips,
    parts,
    owners,
    nodes,
    reset,
    ranked,
    damping,
    steps,
    num_large: int,
    num_loose: int,
    top: int,
    mesh: Mesh,
):
    def local(strips, parts, owners, nodes, reset, ranked, damping, steps):
        total = reset.sum(axis=1, keepdims=True)
        reset = reset / jnp.where(total > 0, total, 1)
        # Node `num_nodes`, which stands for padding, is beyond the last column.
        reset = jnp.take(reset, nodes, axis=1, mode="fill", fill_value=0).T

        def spread(x):
            found = [_gathered(x, *strip) for strip in strips]
            if num_large:
                pieces = _gathered(x, *parts)
                found.append(
                    jax.ops.segment_sum(pieces, owners, num_large, indices_are_sorted=True)
                )
            found.append(jnp.zeros((num_loose, x.shape[1]), x.dtype))
            return jnp.concatenate(found)

        def unsettled(state):
            step, *_, streak = state
            return (step < steps) & ((streak < 2) | (top == 0))

        def advance(state):
            step, x, before, omega, order, streak = state
            # The first step is a plain one: there is nothing before it to extrapolate from.
            omega = jnp.where(
                step == 0, 1.0, 1 / (1 - damping**2 * omega / jnp.where(step == 1, 2.0, 4.0))
            )
            plain = damping * spread(x) + (1 - damping) * reset
            new = omega * (plain - before) + before
            if top:
                found = jax.lax.top_k(new[ranked].T, top)[1]
                streak = jnp.where((found == order).all(), streak + 1, 0)
                order = found
            return step + 1, new, x, omega, order, streak

        order = jnp.zeros((reset.shape[1], top), jnp.int32)
        start = (0, reset, jnp.zeros_like(reset), jnp.float32(1), order, 0)
        _, x, *_ = jax.lax.while_loop(unsettled, advance, start)
        # Polynomials overshoot by rounding where almost nothing arrives.
        x = jnp.maximum(x, 0)
        total = x.sum(axis=0)
        return (x[ranked] / jnp.where(total > 0, total, 1)).T

    by_question = PartitionSpec(mesh.axis_names)
    # check_vma: each device stops its own loop, when its own questions are settled.
    return jax.shard_map(
        local,
        mesh=mesh,
        in_specs=(*(_EVERYWHERE,) * 4, by_question, *(_EVERYWHERE,) * 3),
        out_specs=by_question,
        check_vma=False,
    )(strips, parts, owners, nodes, reset, ranked, damping, steps)


def _gathered(
    x: Float32[Array, "positions questions"],
    places: Int32[Array, "rows width"],
    weights: Float32[Array, "rows width"],
) -> Float32[Array, "rows questions"]:
    # One term at a time: XLA fuses the gathers into the sum, so that no array of edges x questions
    # is ever there. As one gather and a sum over an axis it is two to six times slower on CPU.
    total = weights[:, :1] * x[places[:, 0]]
    for column in range(1, places.shape[1]):
        total = total + weights[:, column : column + 1] * x[places[:, column]]
    return total
