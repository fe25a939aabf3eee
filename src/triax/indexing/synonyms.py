"""Which phrases of a graph mean nearly the same: pairs of near vectors, kept up to date (R10, R11).

Source: HippoRAG (Gutierrez et al., 2024, section 2.2) and HippoRAG 2 (2025, section 3.2): phrases
with a cosine of 0.8 and more get a synonym edge. There all are compared with all at each insertion.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float, Float32, Int32, Int64

from triax.indexing.search import power_of_two

_GRID = 65536.0  # steps of a cosine in which the nearest are ordered: rounding decides no tie
_SLACK = 1e-4  # candidates this far below the threshold are computed again, in float64


@dataclass(frozen=True, slots=True)
class SynonymRule:
    """When two phrases are synonyms.

    threshold: the least cosine.
    max_neighbours: how many of the nearest a phrase names, equal ones in the order of phrases.
    min_bytes: a phrase whose letters and digits take fewer bytes in UTF-8 names none. HippoRAG
        asks for 3 ASCII characters; counted in bytes, "us" has too few and two characters of
        Chinese have enough.
    """

    threshold: float = 0.8
    max_neighbours: int = 100
    min_bytes: int = 3


@dataclass(frozen=True, slots=True)
class Synonyms:
    """Pairs (phrase, neighbour that it names), in rows of `phrases`, sorted by both.

    `vectors` has a row a phrase: what an update needs to compare new phrases with old ones.
    """

    phrases: tuple[str, ...]
    vectors: Float[np.ndarray, "phrases dimension"]
    sources: Int32[np.ndarray, "pairs"]
    targets: Int32[np.ndarray, "pairs"]
    cosines: Float32[np.ndarray, "pairs"]
    rule: SynonymRule


def find_synonyms(
    phrases: Sequence[str],
    vectors: Float[np.ndarray, "phrases dimension"],
    rule: SynonymRule = SynonymRule(),
    progress: Callable[[int], None] | None = None,
) -> Synonyms:
    """Compares all phrases with all, a block at a time.

    Args:
        phrases: distinct and sorted.
        vectors: of length 1, in the same order.
        rule: what makes a pair.
        progress: is called with the number of phrases compared so far.
    """
    everything = np.arange(len(phrases), dtype=np.int64)
    pairs = _nearest(phrases, vectors, everything, everything, rule, progress=progress)
    return Synonyms(tuple(phrases), vectors, *_sorted(*pairs), rule)


def update_synonyms(
    old: Synonyms,
    phrases: Sequence[str],
    embed: Callable[[list[str]], Float[np.ndarray, "new dimension"]],
) -> Synonyms:
    """The synonyms of another set of phrases; equal to `find_synonyms` over it.

    New phrases are compared with all and old ones with the new: O(new x all). A phrase that goes
    takes its pairs along; only where it leaves a gap in a full list is that list filled again.

    Args:
        old: what was found before.
        phrases: distinct and sorted; those that `old` lacks are embedded.
        embed: gives vectors of length 1.
    """
    rule = old.rule
    row_of = {phrase: row for row, phrase in enumerate(old.phrases)}
    from_old = np.array([row_of.get(phrase, -1) for phrase in phrases], np.int64)
    fresh = np.flatnonzero(from_old < 0)
    kept = np.flatnonzero(from_old >= 0)
    vectors = np.empty((len(phrases), old.vectors.shape[1]), old.vectors.dtype)
    vectors[kept] = old.vectors[from_old[kept]]
    if len(fresh):
        vectors[fresh] = embed([phrases[row] for row in fresh])
    place = np.full(len(old.phrases), -1, np.int64)
    place[from_old[kept]] = kept
    sources, targets = place[old.sources], place[old.targets]
    was_full = np.bincount(old.sources, minlength=len(place)) >= rule.max_neighbours
    has_gap = np.zeros(len(phrases), bool)
    has_gap[sources[(sources >= 0) & (targets < 0) & was_full[old.sources]]] = True
    again = np.flatnonzero(has_gap | (from_old < 0))
    rest = np.flatnonzero(~has_gap & (from_old >= 0))
    stays = (sources >= 0) & (targets >= 0)
    stays[stays] = ~has_gap[sources[stays]]
    everything = np.arange(len(phrases), dtype=np.int64)
    parts = [
        (sources[stays], targets[stays], old.cosines[stays]),
        _nearest(phrases, vectors, again, everything, rule),
        _nearest(phrases, vectors, rest, fresh, rule),
    ]
    merged = _capped(*(np.concatenate(column) for column in zip(*parts)), rule.max_neighbours)
    return Synonyms(tuple(phrases), vectors, *_sorted(*merged), rule)


_Pairs = tuple[np.ndarray, np.ndarray, np.ndarray]


def _nearest(
    phrases: Sequence[str],
    vectors: Float[np.ndarray, "phrases dimension"],
    asking: Int64[np.ndarray, "queries"],
    among: Int64[np.ndarray, "keys"],
    rule: SynonymRule,
    block: int = 512,
    tile: int = 8192,
    progress: Callable[[int], None] | None = None,
) -> _Pairs:
    """What `asking` rows name among the rows of `among`; both ascend.

    Holds block x tile scores, block x neighbours results and the keys in float32, so memory is
    linear in the number of phrases.
    """
    asking = asking[[_bytes(phrases[row]) >= rule.min_bytes for row in asking]]
    none = np.zeros(0, np.int64)
    if not len(asking) or not len(among) or rule.max_neighbours < 1:
        return none, none, np.zeros(0, np.float32)
    tile = min(tile, power_of_two(max(64, len(among))))
    keys = np.zeros((-(-len(among) // tile), tile, vectors.shape[1]), np.float32)
    keys.reshape(-1, vectors.shape[1])[: len(among)] = vectors[among]
    keys = jnp.asarray(keys)
    block = min(block, power_of_two(max(64, len(asking))))
    # One more than the cap, for a phrase is its own nearest.
    depth = min(rule.max_neighbours + 1, tile * len(keys))
    found = []
    for start in range(0, len(asking), block):
        rows = asking[start : start + block]
        queries = np.zeros((block, vectors.shape[1]), np.float32)
        queries[: len(rows)] = vectors[rows]
        scores, places = (np.asarray(one) for one in _top(keys, queries, len(among), depth))
        is_near = scores[: len(rows)] >= rule.threshold - _SLACK
        sources = np.repeat(rows, is_near.sum(axis=1))
        targets = among[places[: len(rows)][is_near]]
        cosines = _cosines(vectors, sources, targets)
        stays = (cosines >= rule.threshold) & (sources != targets)
        found.append((sources[stays], targets[stays], cosines[stays].astype(np.float32)))
        if progress is not None:
            progress(min(start + block, len(asking)))
    merged = (np.concatenate(column) for column in zip(*found))
    return _capped(*merged, rule.max_neighbours)


@partial(jax.jit, static_argnames="depth")
def _top(
    keys: Float32[Array, "tiles tile dimension"],
    queries: Float32[Array, "block dimension"],
    num_keys: Int32[Array, ""] | int,
    depth: int,
) -> tuple[Float32[Array, "block depth"], Int32[Array, "block depth"]]:
    """The `depth` best keys of each query; equal ones, on the grid, in the order of keys."""
    tile = keys.shape[1]

    def step(best, part):
        vectors, start = part
        scores = jnp.matmul(queries, vectors.T, precision=lax.Precision.HIGHEST)
        scores = jnp.round(scores * _GRID) / _GRID
        scores = jnp.where(start + jnp.arange(tile) < num_keys, scores, -jnp.inf)
        scores, places = lax.top_k(scores, min(depth, tile))
        scores = jnp.concatenate([best[0], scores], axis=1)
        places = jnp.concatenate([best[1], places + start], axis=1)
        scores, order = lax.top_k(scores, depth)
        return (scores, jnp.take_along_axis(places, order, axis=1)), None

    shape = (queries.shape[0], depth)
    empty = (jnp.full(shape, -jnp.inf, jnp.float32), jnp.zeros(shape, jnp.int32))
    starts = jnp.arange(keys.shape[0], dtype=jnp.int32) * tile
    return lax.scan(step, empty, (keys, starts))[0]


def _cosines(vectors: np.ndarray, sources: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """Dot products in float64, so that (a, b) and (b, a) are the same number, in any batch."""
    found = np.empty(len(sources), np.float64)
    for start in range(0, len(sources), 8192):
        part = slice(start, start + 8192)
        ours = vectors[sources[part]].astype(np.float64)
        found[part] = np.einsum("pd,pd->p", ours, vectors[targets[part]].astype(np.float64))
    return found


def _capped(
    sources: np.ndarray, targets: np.ndarray, cosines: np.ndarray, max_neighbours: int
) -> _Pairs:
    """The nearest `max_neighbours` of each source; equal cosines in the order of targets."""
    order = np.lexsort((targets, -np.round(cosines * _GRID), sources))
    sources, targets, cosines = sources[order], targets[order], cosines[order]
    place = np.arange(len(sources)) - np.searchsorted(sources, sources)
    stays = place < max_neighbours
    return sources[stays], targets[stays], cosines[stays]


def _sorted(sources: np.ndarray, targets: np.ndarray, cosines: np.ndarray) -> _Pairs:
    order = np.lexsort((targets, sources))
    return sources[order].astype(np.int32), targets[order].astype(np.int32), cosines[order]


def _bytes(phrase: str) -> int:
    return len("".join(filter(str.isalnum, phrase)).encode("utf-8"))
