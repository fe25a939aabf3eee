import numpy as np

from triax.indexing.flat import FlatSearch
from triax.indexing.small import SMALL, NumpySearch, default_engine
from triax.indexing.tables import Sources


def test_few_rows_need_no_device():
    vectors = np.zeros((SMALL + 1, 2), np.float32)
    assert isinstance(default_engine(vectors[1:], Sources.identity(SMALL)), NumpySearch)
    assert isinstance(default_engine(vectors, Sources.identity(SMALL + 1)), FlatSearch)


def test_the_nearest_of_each_group_are_those_of_a_full_sort():
    random = np.random.default_rng(0)
    vectors = random.normal(size=(50, 8)).astype(np.float32)
    groups = [random.normal(size=(count, 8)).astype(np.float32) for count in (1, 3)]
    engine = NumpySearch(vectors, Sources.identity(50))
    for group, (rows, bound) in zip(groups, engine.nearest(groups, 7), strict=True):
        scores = (vectors @ group.T).max(axis=1)
        assert set(rows.tolist()) == set(np.argsort(-scores)[:7].tolist())
        assert np.isclose(bound, np.sort(scores)[-7])
    assert engine.nearest(groups, 50)[0][1] == -np.inf
