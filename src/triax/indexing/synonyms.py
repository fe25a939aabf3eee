"""Which phrases of a graph mean nearly the same: pairs of near vectors, kept up to date (R10, R11).

Source: HippoRAG (Gutierrez et al., 2024, section 2.2) and HippoRAG 2 (2025, section 3.2): phrases
with a cosine of 0.8 and more get a synonym edge. There all are compared with all at each insertion.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float, Float32, Int32, Int64

from triax.indexing.search import power_of_two

_GRID = 65536.0  # steps of a cosine in which the nearest are ordered: rounding decides no tie
_SLACK = 1e-4  # bounds are in float32: those this far below the threshold are looked at too


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
    block: int = 1024,
    tile: int = 8192,
    progress: Callable[[int], None] | None = None,
) -> _Pairs:
    """What `asking` rows name among the rows of `among`; both ascend.

    All pairs are compared by an upper bound of their cosine in a few dimensions, and those that
    reach the threshold there by their cosine. Holds block x tile bounds, the pairs of a block and
    the short vectors, so memory is linear in the number of phrases.
    """
    asking = asking[[_bytes(phrases[row]) >= rule.min_bytes for row in asking]]
    none = np.zeros(0, np.int64)
    if not len(asking) or not len(among) or rule.max_neighbours < 1:
        return none, none, np.zeros(0, np.float32)
    # Few against many, as in an update, are compared sooner than all vectors are shortened.
    few = min(len(asking), len(among)) <= vectors.shape[1]
    short = vectors if few else _bounding(vectors)
    tile = min(tile, power_of_two(max(64, len(among))))
    keys = np.zeros((-(-len(among) // tile), tile, short.shape[1]), np.float32)
    keys.reshape(-1, short.shape[1])[: len(among)] = short[among]
    tiles = [jnp.asarray(part) for part in keys]
    block = min(block, power_of_two(max(64, len(asking))))
    found = []
    for start in range(0, len(asking), block):
        rows = asking[start : start + block]
        queries = np.zeros((block, short.shape[1]), np.float32)
        queries[: len(rows)] = short[rows]
        sources, targets = [none], [none]
        for number, part in enumerate(tiles):
            may_be = np.asarray(_reaches(part, queries, rule.threshold - _SLACK))
            who, place = np.divmod(np.flatnonzero(may_be), tile)
            place += number * tile
            # Rows that only fill up a block or a tile are nobody's.
            is_real = (who < len(rows)) & (place < len(among))
            sources.append(rows[who[is_real]])
            targets.append(among[place[is_real]])
        found.append(_named(vectors, np.concatenate(sources), np.concatenate(targets), rule))
        if progress is not None:
            progress(min(start + block, len(asking)))
    sources, targets, cosines = (np.concatenate(column) for column in zip(*found))
    return sources, targets, cosines


def _bounding(
    vectors: Float[np.ndarray, "rows dimension"], sample: int = 20000
) -> Float32[np.ndarray, "rows short"]:
    """Short vectors whose dot products are at least those of the long ones.

    The first coordinates along the axes in which the rows are long, and the length of the rest: by
    Cauchy and Schwarz the product of two rests is at most that of their lengths. With a quarter of
    the dimensions, hardly a pair of names that is not near reaches 0.8.
    """
    dimension = vectors.shape[1]
    kept = dimension // 4
    some = np.asarray(vectors[:: max(1, len(vectors) // sample)], np.float64)
    axes = np.linalg.eigh(some.T @ some)[1][:, ::-1]
    short = np.empty((len(vectors), kept + 1), np.float32)
    for start in range(0, len(vectors), sample):
        turned = np.asarray(vectors[start : start + sample], np.float64) @ axes
        short[start : start + sample, :kept] = turned[:, :kept]
        short[start : start + sample, kept] = np.linalg.norm(turned[:, kept:], axis=1)
    return short


@jax.jit
def _reaches(
    keys: Float32[Array, "tile short"],
    queries: Float32[Array, "block short"],
    least: Float[Array, ""] | float,
) -> Bool[Array, "block tile"]:
    """Whose dot product is at least `least`."""
    return jnp.matmul(queries, keys.T, precision=lax.Precision.HIGHEST) >= least


def _named(
    vectors: Float[np.ndarray, "phrases dimension"],
    sources: Int64[np.ndarray, "pairs"],
    targets: Int64[np.ndarray, "pairs"],
    rule: SynonymRule,
) -> _Pairs:
    """The pairs that are near, as many of each source as the rule allows."""
    cosines = _cosines(vectors, sources, targets)
    stays = (cosines >= rule.threshold) & (sources != targets)
    return _capped(
        sources[stays], targets[stays], cosines[stays].astype(np.float32), rule.max_neighbours
    )


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
