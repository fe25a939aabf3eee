import numpy as np
import pytest

from triax.indexing.graph import phrases_of
from triax.indexing.graph_store import graph_folder, open_graph, open_synonyms
from triax.indexing.hashing import HashingEncoder
from triax.indexing.synonyms import SynonymRule
from triax.indexing.updates import add, build_index, delete

A, B = ["ada", "curie", "empty"], ["babbage", "london"]
RULE = SynonymRule(0.6)


class Counting(HashingEncoder):
    def __init__(self, dimension=32):
        super().__init__(dimension)
        self.texts = []

    def encode(self, texts, role="passage"):
        self.texts += texts
        return super().encode(texts, role)


def same(one, other):
    assert one.phrases == other.phrases and one.num_chunks == other.num_chunks
    for name in ("sources", "targets", "chunk_counts", "subjects", "objects"):
        assert (getattr(one, name) == getattr(other, name)).all(), name
    np.testing.assert_allclose(one.weights, other.weights, rtol=1e-6)


def test_r21_what_was_embedded_is_not_embedded_again(tmp_path, toy):
    index = build_index(*toy(A + B), HashingEncoder(4096), tmp_path / "i")
    encoder, again = Counting(4096), Counting(4096)
    first = open_graph(index, encoder, RULE)
    assert encoder.texts == list(phrases_of(index.tables))
    # "Ada" and "Ada Lovelace": 1 / sqrt(2); the same for Babbage; both sides name each other.
    assert len(first.synonyms.sources) == 4
    assert first.synonyms.cosines == pytest.approx([1 / np.sqrt(2)] * 4)
    second = open_graph(index, again, RULE)
    same(first, second)
    assert (first.synonyms.cosines == second.synonyms.cosines).all() and again.texts == []
    # Another rule takes the same vectors; both stay.
    assert len(open_graph(index, again, SynonymRule(0.9)).synonyms.sources) == 0
    assert again.texts == []
    names = sorted(path.name.partition("-")[0] for path in graph_folder(index).iterdir())
    assert names == ["graph", "graph", "manifest.json", "vectors.npy"]
    assert open_graph(index).synonyms is None


def test_r10_adding_equals_building_and_embeds_only_what_is_new(tmp_path, toy):
    plain = HashingEncoder(32)
    whole = build_index(*toy(A + B), plain, tmp_path / "whole")
    first = build_index(*toy(A), plain, tmp_path / "first")
    old = open_synonyms(first, plain, RULE)
    both = add(first, *toy(B), plain, tmp_path / "both")
    encoder = Counting()
    grown = open_graph(both, encoder, RULE, previous=old)
    assert set(encoder.texts) == set(phrases_of(whole.tables)) - set(old.phrases)
    same(grown, open_graph(whole, plain, RULE))


def test_r10_deleting_equals_never_having_added(tmp_path, toy):
    plain = HashingEncoder(32)
    whole = build_index(*toy(A + B), plain, tmp_path / "whole")
    old = open_synonyms(whole, plain, RULE)
    left = delete(whole, B, tmp_path / "left")
    encoder = Counting()
    same(
        open_graph(left, encoder, RULE, previous=old),
        open_graph(build_index(*toy(A), plain, tmp_path / "first"), plain, RULE),
    )
    assert encoder.texts == []
    gone = delete(whole, A + B, tmp_path / "gone")
    assert open_graph(gone, encoder, RULE, previous=old).num_nodes == 0


def test_r28_vectors_of_another_encoder_are_refused(tmp_path, toy):
    index = build_index(*toy(A), HashingEncoder(32), tmp_path / "i")
    open_graph(index, HashingEncoder(32), RULE)
    with pytest.raises(ValueError, match="'hashing-32'.*there.*'hashing-16'"):
        open_graph(index, HashingEncoder(16), RULE)
    with pytest.raises(ValueError, match="needs an encoder"):
        open_graph(index, None, RULE)
