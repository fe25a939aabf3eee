import numpy as np
import pytest

from triax.indexing.flat import FlatSearch
from triax.records.verbs import Retriever
from triax.retrieval.dense import DenseRetriever


def test_ranks_all_chunks_by_their_best_dot_product(index, encoder, chunks, ids):
    retriever = DenseRetriever(index, encoder)
    assert isinstance(retriever, Retriever)
    queries = ["Who was born in Warsaw?", "London program"]
    found, none = retriever.search([queries, []], 9)
    passages = encoder.encode([chunk.passage for chunk in chunks])
    scores = (passages @ encoder.encode(queries).T).max(axis=1)
    order = np.argsort(-scores, kind="stable")
    assert ids(found) == [chunks[row].id for row in order]
    np.testing.assert_allclose([c.score for c in found.chunks], scores[order], rtol=1e-6)
    assert found.hits == () and none.chunks == ()


def test_the_flat_engine_gives_the_same(index, encoder):
    groups = [["Who was born in Warsaw?"], ["London"]]
    plain = DenseRetriever(index, encoder).search(groups, 2)
    assert DenseRetriever(index, encoder, FlatSearch).search(groups, 2) == plain


def test_r09_tiny_and_equal(build, encoder, ids):
    assert DenseRetriever(build(), encoder).search([["x"]], 3)[0].chunks == ()
    assert ids(DenseRetriever(build("one"), encoder).search([["other"]], 3)[0]) == ["c0"]
    same = DenseRetriever(build("same", "same", "same"), encoder)
    assert ids(same.search([["same"]], 2)[0]) == ["c0", "c1"]


def test_an_index_without_chunk_vectors_is_refused(build, encoder):
    with pytest.raises(ValueError, match="no chunk vectors.*embeds_chunks=True"):
        DenseRetriever(build("one", embeds_chunks=False), encoder)
