import sys
import types
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.decomposition import PCA
from sklearn.mixture import GaussianMixture

import triax.indexing.mixtures as mixtures
from triax.indexing.mixtures import (
    Mixing,
    bounded_clusters,
    halves,
    mixture_clusters,
    reduce_by_pca,
    reduce_by_umap,
    soft_clusters,
)

PCA_MIXING = Mixing(reduction="pca", dimension=2, max_clusters=8)


def blobs(num_blobs=3, size=12, dimension=2, seed=0):
    """Points around corners that are 20 standard deviations apart; rows in turn of the blobs."""
    rng = np.random.default_rng(seed)
    corners = 20 * np.array([[n % 2, n // 2] + [0] * (dimension - 2) for n in range(num_blobs)])
    return np.tile(corners, (size, 1)) + rng.standard_normal((num_blobs * size, dimension))


def as_sets(clusters):
    return {frozenset(map(int, rows)) for rows in clusters}


@pytest.mark.parametrize("num_blobs", [1, 2, 3, 4])
def test_it_finds_the_number_of_blobs_and_their_rows(num_blobs):
    points = blobs(num_blobs, 30)
    wanted = {frozenset(range(n, len(points), num_blobs)) for n in range(num_blobs)}
    assert as_sets(mixture_clusters(points, PCA_MIXING)) == wanted


def test_the_mixture_is_the_one_with_the_lowest_bic_of_scikit_learn():
    """Blobs that overlap, so that rows belong to two; p > 0.1 or the likeliest."""
    rng = np.random.default_rng(1)
    points = np.concatenate([rng.standard_normal((40, 2)), rng.standard_normal((40, 2)) + [5, 0]])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        models = [GaussianMixture(n, random_state=224).fit(points) for n in range(1, 8)]
    best = min(models, key=lambda model: model.bic(points))
    assert best.n_components > 1
    shares = best.predict_proba(points)
    wanted = as_sets(np.flatnonzero(column > 0.1) for column in shares.T)
    found = as_sets(mixture_clusters(points, PCA_MIXING))
    assert found == wanted
    assert sum(map(len, found)) > len(points)


def test_a_row_that_no_component_claims_goes_to_the_likeliest():
    points = blobs(2, 20)
    found = mixture_clusters(points, Mixing("pca", 2, threshold=1.0, max_clusters=8))
    assert as_sets(found) == as_sets([range(0, 40, 2), range(1, 40, 2)])


def test_pca_is_that_of_scikit_learn_but_for_signs():
    points = np.random.default_rng(2).standard_normal((20, 6))
    ours, theirs = reduce_by_pca(points, 3), PCA(3).fit_transform(points)
    np.testing.assert_allclose(np.abs(ours), np.abs(theirs), atol=1e-9)


@pytest.mark.parametrize("num_rows", range(13))
def test_r13_few_or_equal_rows_are_one_cluster(num_rows):
    """Up to 11 rows as in RAPTOR; equal ones, however many, since they are one place."""
    distinct = np.random.default_rng(3).standard_normal((num_rows, 16))
    clusters = soft_clusters(distinct, Mixing("pca"))
    if num_rows <= 11:
        assert [rows.tolist() for rows in clusters] == [list(range(num_rows))] * bool(num_rows)
    assert {row for rows in clusters for row in rows.tolist()} == set(range(num_rows))
    equal = soft_clusters(np.ones((num_rows * 3, 4)), Mixing("pca"))
    assert [rows.tolist() for rows in equal] == [list(range(num_rows * 3))] * bool(num_rows)
    zeros = soft_clusters(np.zeros((num_rows, 4)), Mixing("umap"))
    assert [rows.tolist() for rows in zeros] == [list(range(num_rows))] * bool(num_rows)


def test_r13_points_on_a_line_and_repeated_points_are_clustered():
    """Covariances without a spread; equal rows stay together, far ones apart."""
    line = np.outer(np.repeat([0.0, 0.1, 0.2, 50.0, 50.1, 50.2], 3), np.ones(5))
    found = as_sets(soft_clusters(line, Mixing("pca", 1, max_clusters=8)))
    assert frozenset.union(*found) == set(range(18))
    for cluster in found:
        assert cluster <= set(range(9)) or cluster <= set(range(9, 18))
        assert {row // 3 * 3 + n for row in cluster for n in range(3)} == cluster


def test_r18_the_order_of_rows_does_not_matter():
    vectors = blobs(4, 10, 6, seed=4)
    mixing = Mixing("pca", 3, max_clusters=10)
    order = np.random.default_rng(5).permutation(len(vectors))
    assert as_sets(soft_clusters(vectors, mixing)) == as_sets(
        order[rows] for rows in soft_clusters(vectors[order], mixing)
    )


def test_the_halves_lie_on_either_side():
    points = np.array([[5.0, 0], [0, 1], [4, 0], [1, 0], [6, 1]])
    assert as_sets(halves(points)) == {frozenset({1, 3}), frozenset({0, 2, 4})}
    assert [len(half) for half in halves(np.ones((5, 3)))] == [2, 3]


vectors = arrays(np.float64, st.tuples(st.integers(1, 24), st.just(3)), elements=st.integers(-2, 2))


@settings(max_examples=25)
@given(vectors, st.data())
def test_r13_bounded_clusters_end_and_lose_no_row(rows, data):
    sizes = st.lists(st.integers(0, 9), min_size=len(rows), max_size=len(rows))
    tokens = np.array(data.draw(sizes))
    limit = data.draw(st.integers(0, 30))
    found = bounded_clusters(rows, tokens, limit, Mixing("pca", 2, max_clusters=4))
    assert {row for cluster in found for row in cluster} == set(range(len(rows)))
    assert len(set(found)) == len(found)
    for cluster in found:
        assert list(cluster) == sorted(set(cluster))
        assert len(cluster) == 1 or tokens[list(cluster)].sum() <= limit


def test_r13_equal_vectors_that_are_too_long_are_halved():
    found = bounded_clusters(np.ones((8, 4)), np.full(8, 10), 20, Mixing("pca"))
    assert found == [(0, 1), (2, 3), (4, 5), (6, 7)]


@pytest.mark.parametrize("kind", ["whole", "many"])
def test_r13_what_does_not_get_smaller_is_cut_into_halves(monkeypatch, kind):
    """A clustering that gives everything back, and one that would go on nearly for ever."""
    calls = []

    def stuck(rows, mixing):
        calls.append(len(rows))
        every = np.arange(len(rows))
        if kind == "whole" or len(every) < 3:
            return [every]
        return [np.delete(every, gone) for gone in (0, 1, 2)]

    monkeypatch.setattr(mixtures, "soft_clusters", stuck)
    line = np.arange(16.0)[:, None] * np.ones((1, 2))
    found = bounded_clusters(line, np.full(16, 10), 40, PCA_MIXING)
    assert all(len(rows) <= 4 for rows in found) and len(calls) < 100
    assert {row for rows in found for row in rows} == set(range(16))
    if kind == "whole":
        assert found == [tuple(range(start, start + 4)) for start in range(0, 16, 4)]


def test_the_second_scale_parts_what_the_first_does_not():
    """Two far pairs of near blobs: along the one direction of the whole, each pair is one."""
    corners = np.eye(8)[[0, 0, 1, 1]] * 100
    corners[1, 4] = corners[3, 5] = 3
    rng = np.random.default_rng(3)
    rows = np.repeat(corners, 20, axis=0) + 0.1 * rng.standard_normal((80, 8))
    mixing = Mixing("pca", dimension=1, max_clusters=4)
    pairs = {frozenset(range(40)), frozenset(range(40, 80))}
    assert as_sets(mixture_clusters(reduce_by_pca(rows, 1), mixing)) == pairs
    wanted = {frozenset(range(start, start + 20)) for start in range(0, 80, 20)}
    assert as_sets(soft_clusters(rows, mixing)) == wanted


def test_umap_is_asked_for_what_the_paper_has(monkeypatch):
    asked = []

    class Umap:
        def __init__(self, **given):
            asked.append(given)

        def fit_transform(self, rows):
            return reduce_by_pca(rows, 1)

    monkeypatch.setitem(sys.modules, "umap", types.SimpleNamespace(UMAP=Umap))
    found = soft_clusters(blobs(2, 32, 16), Mixing(max_clusters=3))
    assert as_sets(found) == as_sets([range(0, 64, 2), range(1, 64, 2)])
    # Of all rows the root of 64 - 1; then in each of the two blobs.
    assert [one.pop("n_neighbors") for one in asked] == [7, 10, 10]
    same = {"n_components": 10, "metric": "cosine", "random_state": 224, "n_jobs": 1}
    assert asked == [same] * 3


def test_where_umap_has_no_place_for_a_row_pca_takes_over(monkeypatch, caplog):
    class Umap:
        def __init__(self, **given):
            pass

        def fit_transform(self, rows):
            return np.full((len(rows), 2), np.nan)

    monkeypatch.setitem(sys.modules, "umap", types.SimpleNamespace(UMAP=Umap))
    rows = np.random.default_rng(0).standard_normal((8, 4))
    found = reduce_by_umap(rows, Mixing(dimension=2), 3)
    np.testing.assert_array_equal(found, reduce_by_pca(rows, 2))
    assert "PCA takes over" in caplog.text


def test_umap_finds_the_blobs_and_does_so_again():
    """Angles, not lengths: three directions, at lengths from 1 to 9."""
    rng = np.random.default_rng(6)
    centres = np.eye(12)[:3]
    lengths = rng.uniform(1, 9, (45, 1))
    rows = lengths * (np.tile(centres, (15, 1)) + 0.05 * rng.standard_normal((45, 12)))
    mixing = Mixing("umap", dimension=2, max_clusters=8)
    found = soft_clusters(rows, mixing)
    # Each cluster stays within one direction, and no direction is lost.
    assert all(len({row % 3 for row in one.tolist()}) == 1 for one in found)
    assert {row for one in found for row in one.tolist()} == set(range(45))
    # One row more than are one cluster in any case.
    few = soft_clusters(rng.standard_normal((12, 16)), Mixing("umap"))
    assert {row for one in few for row in one.tolist()} == set(range(12))
    order = rng.permutation(45)
    assert as_sets(found) == as_sets(order[one] for one in soft_clusters(rows[order], mixing))


def test_a_missing_library_and_bad_numbers_are_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "umap", None)
    with pytest.raises(ImportError, match=r"umap-learn.*triax\[systems\].*'pca'"):
        soft_clusters(np.random.default_rng(8).standard_normal((20, 4)), Mixing("umap", 2))
    with monkeypatch.context() as patched:
        patched.setitem(sys.modules, "sklearn.mixture", None)
        with pytest.raises(ImportError, match=r"scikit-learn.*triax\[systems\]"):
            soft_clusters(blobs(2, 8), PCA_MIXING)
    with pytest.raises(ValueError, match="reduction is 'tsne'"):
        Mixing("tsne")
    with pytest.raises(ValueError, match="expected 1 or more"):
        Mixing(dimension=0)
