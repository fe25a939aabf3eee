"""Soft clusters of vectors: reduced to few dimensions, then a Gaussian mixture, as in RAPTOR.

All rows are clustered once, then those of each cluster by themselves: the first sees the whole,
the second what the reduction of the whole has blurred. A row may belong to several clusters.

Source: "RAPTOR" (Sarthi et al., ICLR 2024, section 3) and the code released with it. There, nothing
is seeded in the reduction, few or equal rows raise an error, and a row that no component claims is
lost. Here the result follows from the set of vectors alone (R13, R18): equal vectors count once,
distinct ones are sorted, seeds are fixed and one thread does the sums.
"""

import logging
import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Float64, Int64

_log = logging.getLogger(__name__)
_MAX_DEPTH = 8  # of clusterings within one another, after which a cluster is cut into halves
Rows = Int64[np.ndarray, "_"]


@dataclass(frozen=True, slots=True)
class Mixing:
    """How vectors are clustered; the numbers are those of RAPTOR's code.

    reduction: "umap" as in the paper, or "pca", which needs no umap-learn and no time.
    dimension: that vectors are reduced to; so many and one more rows are one cluster.
    threshold: a row belongs to every component of a higher probability, and in any case to its
        likeliest.
    max_clusters: a mixture has fewer components than this, and fewer than it has rows.
    num_neighbours: of UMAP within a cluster. Over all rows it is the root of their number.
    seed: of UMAP and of the mixtures.
    """

    reduction: str = "umap"
    dimension: int = 10
    threshold: float = 0.1
    max_clusters: int = 50
    num_neighbours: int = 10
    seed: int = 224

    def __post_init__(self) -> None:
        if self.reduction not in ("umap", "pca"):
            raise ValueError(f"reduction is {self.reduction!r}, expected 'umap' or 'pca'")
        if self.dimension < 1 or self.max_clusters < 2:
            raise ValueError(
                f"dimension is {self.dimension}, expected 1 or more; max_clusters is "
                f"{self.max_clusters}, expected 2 or more"
            )


def soft_clusters(
    vectors: Float[np.ndarray, "rows dimension"], mixing: Mixing = Mixing()
) -> list[Rows]:
    """Clusters of rows, each ascending, in no repeat; every row is in one or more.

    Args:
        vectors: compared by their angles with reduction "umap", by their places with "pca".
        mixing: the numbers of the method.

    Raises:
        ImportError: scikit-learn, or umap-learn for reduction "umap", is not installed.
    """
    distinct, place = np.unique(vectors, axis=0, return_inverse=True)
    order = np.argsort(place, kind="stable")
    rows_of = np.split(order, np.searchsorted(place[order], np.arange(1, len(distinct))))
    found = {
        tuple(wide[narrow].tolist())
        for wide in _mixed(distinct, mixing, int((len(distinct) - 1) ** 0.5) if len(place) else 0)
        for narrow in _mixed(distinct[wide], mixing, mixing.num_neighbours)
    }
    clusters = [np.sort(np.concatenate([rows_of[one] for one in rows])) for rows in found]
    return sorted(clusters, key=lambda rows: rows.tolist())


def bounded_clusters(
    vectors: Float[np.ndarray, "rows dimension"],
    tokens: Int64[np.ndarray, "rows"],
    max_tokens: int,
    mixing: Mixing = Mixing(),
) -> list[tuple[int, ...]]:
    """Soft clusters of at most `max_tokens`, or of one row; every row is in one or more.

    A larger cluster is clustered by itself. Where that gives it back whole, or its rows more than
    twice, or after some turns of it, the cluster is cut into halves, so that this ends (R13).
    """
    found: set[tuple[int, ...]] = set()
    waiting = [(rows, 0) for rows in soft_clusters(vectors, mixing)]
    while waiting:
        rows, depth = waiting.pop()
        if len(rows) == 1 or tokens[rows].sum() <= max_tokens:
            found.add(tuple(rows.tolist()))
            continue
        parts: Sequence[np.ndarray] = ()
        if depth < _MAX_DEPTH:
            parts = soft_clusters(vectors[rows], mixing)
        sizes = [len(part) for part in parts] or [len(rows)]
        if max(sizes) == len(rows) or sum(sizes) > 2 * len(rows):
            parts = halves(vectors[rows])
        waiting += [(rows[part], depth + 1) for part in parts]
    return sorted(found)


def halves(vectors: Float[np.ndarray, "rows dimension"]) -> tuple[Rows, Rows]:
    """Two halves of the rows, on either side along the direction in which they differ most."""
    along = np.round(reduce_by_pca(vectors, 1)[:, 0], 9)
    order = np.lexsort((np.arange(len(along)), along))
    middle = len(order) // 2
    return np.sort(order[:middle]), np.sort(order[middle:])


def mixture_clusters(
    points: Float[np.ndarray, "rows dimension"], mixing: Mixing = Mixing()
) -> list[Rows]:
    """The components of the Gaussian mixture with the lowest BIC, as rows that belong to them.

    Mixtures of 1, 2, ... components with full covariances are fitted; the first of equal BIC
    wins. Equal points are never parted into more components than there are places. RAPTOR's code
    fits the winner again with another seed; here it is the one that was compared.

    Raises:
        ImportError: scikit-learn is not installed.
    """
    if not len(points):
        return []
    points = np.asarray(points, np.float64)
    num_places = len(np.unique(points, axis=0))
    last = min(mixing.max_clusters - 1, len(points) - 1, num_places)
    probabilities = _memberships(points, last, mixing.seed)
    belongs = probabilities > mixing.threshold
    belongs[np.arange(len(points)), probabilities.argmax(axis=1)] = True
    return [np.flatnonzero(column) for column in belongs.T if column.any()]


def reduce_by_pca(
    vectors: Float[np.ndarray, "rows dimension"], dimension: int
) -> Float64[np.ndarray, "rows reduced"]:
    """Coordinates along the directions of greatest variance, at most `dimension` of them."""
    centred = np.asarray(vectors, np.float64)
    centred = centred - centred.mean(axis=0)
    left, sizes, directions = np.linalg.svd(centred, full_matrices=False)
    # A direction and its opposite are one; the largest component decides.
    largest = np.abs(directions).argmax(axis=1)
    signs = np.sign(directions[np.arange(len(directions)), largest])
    return (left * sizes * signs)[:, :dimension]


def reduce_by_umap(
    vectors: Float[np.ndarray, "rows dimension"], mixing: Mixing, num_neighbours: int
) -> Float64[np.ndarray, "rows reduced"]:
    """UMAP's layout by cosine, the same in every call. Takes at least `dimension` + 2 rows.

    Where a row has no neighbour that UMAP counts, it has no place; then all are placed by PCA.

    Raises:
        ImportError: umap-learn is not installed.
    """
    try:
        from umap import UMAP
    except ImportError as error:
        raise ImportError(
            f"reduction 'umap' needs umap-learn, which cannot be imported ({error}); pip install "
            "'triax[systems]', or take reduction 'pca', which gives another tree"
        ) from error
    model = UMAP(
        n_neighbors=min(max(2, num_neighbours), len(vectors) - 1),
        n_components=mixing.dimension,
        metric="cosine",
        random_state=mixing.seed,
        n_jobs=1,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        points = np.asarray(model.fit_transform(vectors), np.float64)
    if not np.isfinite(points).all():
        _log.warning("UMAP found no place for some of %d rows; PCA takes over", len(vectors))
        return reduce_by_pca(vectors, mixing.dimension)
    return points


def _mixed(
    vectors: Float[np.ndarray, "rows dimension"], mixing: Mixing, num_neighbours: int
) -> Sequence[Rows]:
    if not len(vectors):
        return []
    if len(vectors) <= mixing.dimension + 1:
        return [np.arange(len(vectors))]
    with _one_thread():
        if mixing.reduction == "pca":
            points = reduce_by_pca(vectors, mixing.dimension)
        else:
            points = reduce_by_umap(vectors, mixing, num_neighbours)
        return mixture_clusters(points, mixing)


def _memberships(
    points: Float64[np.ndarray, "rows dimension"], last: int, seed: int
) -> Float64[np.ndarray, "rows components"]:
    """The probabilities that the best mixture of 1 to `last` components gives."""
    if last < 2:
        return np.ones((len(points), 1))
    GaussianMixture = _scikit().mixture.GaussianMixture
    best, lowest = None, np.inf
    for count in range(1, last + 1):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that a fit stopped before it converged
            try:
                model = GaussianMixture(count, random_state=seed).fit(points)
            except ValueError:  # a component shrank to less than a point
                continue
        if (bic := model.bic(points)) < lowest:
            best, lowest = model, bic
    return np.ones((len(points), 1)) if best is None else best.predict_proba(points)


def _one_thread():
    """Sums in one order: several threads add in the order in which they come."""
    _scikit()
    from threadpoolctl import threadpool_limits

    return threadpool_limits(limits=1)


def _scikit():
    try:
        import sklearn.mixture
    except ImportError as error:
        raise ImportError(
            f"mixtures are fitted by scikit-learn, which cannot be imported ({error}); "
            "pip install 'triax[systems]'"
        ) from error
    return sklearn
