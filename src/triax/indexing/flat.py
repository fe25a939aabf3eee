"""Exact nearest propositions by brute force in JAX, on one device or on many."""

from collections.abc import Sequence
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import Mesh, PartitionSpec
from jaxtyping import Array, Float, Float32, Int32

from triax.indexing.search import Candidates, power_of_two, slack
from triax.indexing.tables import Sources
from triax.models.memory import index_memory, report
from triax.models.mesh import current_mesh, rows_spread

_BLOCK = 64  # groups a call
_EVERYWHERE = PartitionSpec()


class FlatSearch:
    """All rows against all queries, a tile of rows at a time; the best of each tile are merged.

    Rows are spread over the devices of a mesh; each finds its own best, which are then merged.
    A call holds queries x tile scores and groups x depth results. How deep a walk must go is
    counted only where the first depth did not settle it: `segment_max` over (row, chunk) edges
    gives each chunk's best score, `top_k` the score of the last chunk to be reached, and the rows
    with no lower score are those that the walk can visit. That holds groups x chunks scores more.
    """

    def __init__(
        self,
        vectors: Float[np.ndarray, "rows dimension"],
        sources: Sources,
        mesh: Mesh | None = None,
        tile: int = 16384,
    ) -> None:
        """Puts the rows on the devices, in the dtype that they have.

        Args:
            vectors: one row a proposition.
            sources: the chunks of each row.
            mesh: rows are spread over all of its axes; the current one if None.
            tile: rows scored at once on each device; fewer rows take a smaller power of two.
        """
        self._mesh = current_mesh() if mesh is None else mesh
        self._num_rows = len(vectors)
        self._num_chunks = sources.num_chunks
        self._sources = sources
        devices = self._mesh.size
        self._tile = min(power_of_two(tile), power_of_two(-(-len(vectors) // devices)))
        tiles = max(1, -(-len(vectors) // (self._tile * devices))) * devices
        padded = np.zeros((tiles * self._tile, vectors.shape[1]), vectors.dtype)
        estimate = index_memory(padded.shape, padded.dtype, devices, self._tile, _BLOCK)
        report(f"search over {len(vectors):,} vectors", estimate, self._mesh)
        padded[: len(vectors)] = vectors
        self._vectors = self._put(padded.reshape(tiles, self._tile, vectors.shape[1]))
        self._starts = self._put(np.arange(tiles, dtype=np.int32) * self._tile)
        self._edges: tuple[jax.Array, jax.Array] | None = None

    def nearest(
        self, groups: Sequence[Float32[np.ndarray, "_ dimension"]], depth: int
    ) -> list[Candidates]:
        """The `depth` best rows of each group, and the score of the last one as the bound."""
        depth = min(depth, power_of_two(self._num_rows))
        results: list[Candidates] = []
        for start in range(0, len(groups), _BLOCK):
            block = groups[start : start + _BLOCK]
            scores, rows = _nearest(
                self._vectors, self._starts, pad_groups(block), self._num_rows, depth, self._mesh
            )
            scores, rows = np.asarray(scores), np.asarray(rows)
            for group_scores, group_rows in zip(scores[: len(block)], rows[: len(block)]):
                found = group_rows[group_scores > -np.inf].astype(np.int64)
                is_all = len(found) >= self._num_rows
                results.append((found, -np.inf if is_all else float(group_scores[-1])))
        return results

    def deepen(
        self,
        groups: Sequence[Float32[np.ndarray, "_ dimension"]],
        num_chunks: int,
        depth: int,
        floor: float,
    ) -> int:
        """The depth that settles all these groups, counted in one pass, in powers of two."""
        if self._edges is None:
            self._edges = self._tiled_edges()
        num_chunks = min(num_chunks, self._num_chunks)
        needed = 2 * depth
        for start in range(0, len(groups), _BLOCK):
            block = groups[start : start + _BLOCK]
            counts = _count(
                self._vectors,
                self._starts,
                *self._edges,
                pad_groups(block),
                self._num_rows,
                max(slack(group) for group in block),
                floor,
                num_chunks,
                self._num_chunks,
                self._mesh,
            )
            needed = max(needed, int(np.asarray(counts)[: len(block)].max()) + 1)
        return min(power_of_two(needed), power_of_two(self._num_rows))

    def _put(self, array: np.ndarray) -> jax.Array:
        return jax.device_put(array, rows_spread(self._mesh))

    def _tiled_edges(self) -> tuple[jax.Array, jax.Array]:
        """Edges of each tile, padded to the longest: place in the tile, chunk (or one past)."""
        tiles = self._starts.shape[0]
        bounds = np.minimum(np.arange(tiles + 1) * self._tile, self._num_rows)
        cuts = self._sources.offsets[bounds]
        width = power_of_two(int(np.diff(cuts).max(initial=1)))
        places = np.zeros((tiles, width), np.int32)
        chunks = np.full((tiles, width), self._num_chunks, np.int32)
        row_of_edge = np.repeat(np.arange(self._num_rows), np.diff(self._sources.offsets))
        for number, (low, high) in enumerate(zip(cuts[:-1], cuts[1:])):
            places[number, : high - low] = row_of_edge[low:high] - number * self._tile
            chunks[number, : high - low] = self._sources.rows[low:high]
        return self._put(places), self._put(chunks)


def pad_groups(
    groups: Sequence[Float32[np.ndarray, "_ dimension"]],
) -> Float32[np.ndarray, "groups most dimension"]:
    """Groups as one array, both sizes powers of two. A group's first query fills its rest.

    The same query twice changes no maximum, so no mask is needed.
    """
    most = power_of_two(max(len(group) for group in groups))
    padded = np.zeros((power_of_two(len(groups)), most, groups[0].shape[1]), np.float32)
    for place, group in zip(padded, groups):
        place[: len(group)] = group
        place[len(group) :] = group[0]
    return padded


def _tile_scores(
    tile: Float[Array, "tile dimension"],
    start: Int32[Array, ""],
    queries: Float32[Array, "groups queries dimension"],
    num_rows: Int32[Array, ""],
) -> Float32[Array, "groups tile"]:
    # HIGHEST: a GPU would otherwise round the factors to TF32, beyond the slack of the search.
    scores = jnp.einsum(
        "gqd,td->gqt", queries, tile.astype(jnp.float32), precision=lax.Precision.HIGHEST
    ).max(axis=1)
    is_row = start + jnp.arange(tile.shape[0]) < num_rows
    return jnp.where(is_row[None], scores, -jnp.inf)


def _sharded(function, mesh: Mesh, num_split: int, num_whole: int):
    specs = (PartitionSpec(mesh.axis_names),) * num_split + (_EVERYWHERE,) * num_whole
    # check_vma: the checker cannot see that a merge of gathered results is the same everywhere.
    return jax.shard_map(
        function, mesh=mesh, in_specs=specs, out_specs=_EVERYWHERE, check_vma=False
    )


@partial(jax.jit, static_argnames=("depth", "mesh"))
def _nearest(vectors, starts, queries, num_rows, depth: int, mesh: Mesh):
    def best(scores, rows):
        # top_k takes the earlier of equal scores, and rows ascend: ties go to the lower row.
        scores, places = lax.top_k(scores, depth)
        return scores, jnp.take_along_axis(rows, places, axis=1)

    def local(vectors, starts, queries, num_rows):
        def step(carry, tile):
            tile_vectors, start = tile
            scores = _tile_scores(tile_vectors, start, queries, num_rows)
            scores, places = lax.top_k(scores, min(depth, scores.shape[1]))
            scores = jnp.concatenate([carry[0], scores], axis=1)
            rows = jnp.concatenate([carry[1], places + start], axis=1)
            return best(scores, rows), None

        shape = (queries.shape[0], depth)
        empty = (jnp.full(shape, -jnp.inf, jnp.float32), jnp.zeros(shape, jnp.int32))
        found, _ = lax.scan(step, empty, (vectors, starts))
        gather = partial(lax.all_gather, axis_name=mesh.axis_names, axis=1, tiled=True)
        return best(*(gather(part) for part in found))

    return _sharded(local, mesh, 2, 2)(vectors, starts, queries, num_rows)


@partial(jax.jit, static_argnames=("num_chunks", "all_chunks", "mesh"))
def _count(
    vectors,
    starts,
    places,
    chunks,
    queries,
    num_rows,
    tolerance,
    floor,
    num_chunks: int,
    all_chunks: int,
    mesh: Mesh,
):
    def local(vectors, starts, places, chunks, queries, num_rows, tolerance, floor):
        def reach(best, tile):
            tile_vectors, start, tile_places, tile_chunks = tile
            scores = _tile_scores(tile_vectors, start, queries, num_rows)
            edges = scores.T[tile_places]
            found = jax.ops.segment_max(edges, tile_chunks, num_segments=all_chunks + 1)
            return jnp.maximum(best, found), None

        def count(total, tile):
            scores = _tile_scores(*tile, queries, num_rows)
            enough = (scores >= (last - 2 * tolerance)[:, None]) & (scores > floor)
            return total + enough.sum(axis=1, dtype=jnp.int32), None

        lowest = jnp.full((all_chunks + 1, queries.shape[0]), -jnp.inf, jnp.float32)
        best, _ = lax.scan(reach, lowest, (vectors, starts, places, chunks))
        best = lax.pmax(best[:all_chunks], mesh.axis_names)
        last = lax.top_k(best.T, num_chunks)[0][:, -1]
        zero = jnp.zeros(queries.shape[0], jnp.int32)
        total, _ = lax.scan(count, zero, (vectors, starts))
        return lax.psum(total, mesh.axis_names)

    whole = (queries, num_rows, tolerance, floor)
    return _sharded(local, mesh, 4, 4)(vectors, starts, places, chunks, *whole)
