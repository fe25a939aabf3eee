import shutil

import numpy as np
import pytest

from triax.indexing import embedding
from triax.indexing.hashing import HashingEncoder
from triax.indexing.updates import MissingVectorsError, build_index
from triax.indexing.vector_shards import VectorShards

DOCUMENTS = ["ada", "curie", "babbage", "london"]


class Counting(HashingEncoder):
    def __init__(self):
        super().__init__(32)
        self.calls = []

    def encode(self, texts, role="passage"):
        self.calls.append((tuple(texts), role))
        return super().encode(texts, role)


def files(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.fixture(autouse=True)
def small_shards(monkeypatch):
    """Two texts a shard: `shard_size` is a default of four functions."""
    for function in (
        embedding.embed,
        embedding.embed_shards,
        embedding.num_shards,
        embedding.missing_shards,
    ):
        inner = getattr(function, "__wrapped__", function)
        defaults = tuple(2 if one == 1024 else one for one in inner.__defaults__)
        monkeypatch.setattr(inner, "__defaults__", defaults)


def test_r18_three_workers_make_the_calls_and_the_bytes_of_one(tmp_path, toy):
    alone, shared = Counting(), Counting()
    whole = build_index(*toy(DOCUMENTS), alone, tmp_path / "whole", role="query")
    shards = VectorShards.of(*toy(DOCUMENTS), tmp_path / "i", role="query")
    assert len(shards) > 4 and shards.missing() == list(range(len(shards)))
    told = []
    for worker in (2, 0, 1):
        own = range(worker, len(shards), 3)
        assert shards.make(shared, own, told.append) == len(own)
        assert told == list(range(1, len(own) + 1))
        told.clear()
    assert shards.missing() == []
    assert sorted(shared.calls) == sorted(alone.calls)
    merging = Counting()
    index = build_index(*toy(DOCUMENTS), merging, tmp_path / "i", role="query", is_embedded=True)
    assert merging.calls == [] and files(index.folder) == files(whole.folder)
    assert {path.name for path in tmp_path.iterdir()} == {"whole", "i"}


def test_a_merge_names_what_is_missing_and_makes_nothing(tmp_path, toy):
    shards = VectorShards.of(*toy(DOCUMENTS), tmp_path / "i")
    last = len(shards) - 1
    encoder = HashingEncoder(32)
    shards.make(encoder, [number for number in range(last) if number != 1])
    assert shards.missing() == [1, last]
    chunk_shards = 2  # of four chunks
    with pytest.raises(
        MissingVectorsError,
        match=rf"2 shards of .*\(propositions: \[1\]; chunks: \[{chunk_shards - 1}\]\); submit",
    ):
        build_index(*toy(DOCUMENTS), encoder, tmp_path / "i", is_embedded=True)
    counting = Counting()
    assert shards.make(counting, range(len(shards))) == 2 and len(counting.calls) == 2
    build_index(*toy(DOCUMENTS), encoder, tmp_path / "i", is_embedded=True)


def test_without_chunks(tmp_path, toy):
    shards = VectorShards.of(*toy(DOCUMENTS), tmp_path / "i", embeds_chunks=False)
    assert len(shards) == len(VectorShards.of(*toy(DOCUMENTS), tmp_path / "i")) - 2
    shards.make(HashingEncoder(32), range(99))
    index = build_index(
        *toy(DOCUMENTS), HashingEncoder(32), tmp_path / "i", embeds_chunks=False, is_embedded=True
    )
    assert index.chunk_vectors is None


def test_r30_a_worker_that_is_late_leaves_nothing(tmp_path, toy):
    """Cut off and forgotten, it goes on after others have made the index."""
    index = tmp_path / "i"
    shards = VectorShards.of(*toy(DOCUMENTS), index)

    class Late(HashingEncoder):
        def encode(self, texts, role="passage"):
            if not index.exists():
                build_index(*toy(DOCUMENTS), HashingEncoder(32), index)
            return super().encode(texts, role)

    shards.make(Late(32), range(len(shards)))
    assert [path.name for path in tmp_path.iterdir()] == ["i"]
    encoder = Counting()
    assert shards.make(encoder, range(len(shards))) == 0 and encoder.calls == []
    assert shards.is_built and shards.missing() == []
    assert [path.name for path in tmp_path.iterdir()] == ["i"]


def test_a_folder_that_others_take_away_before_the_index_is_an_error(tmp_path, toy):
    shards = VectorShards.of(*toy(DOCUMENTS), tmp_path / "i")

    class Losing(HashingEncoder):
        def encode(self, texts, role="passage"):
            shutil.rmtree(tmp_path / "i.embedding")
            return super().encode(texts, role)

    with pytest.raises(FileNotFoundError):
        shards.make(Losing(32), [0])


def test_r09_nothing_to_embed(tmp_path, toy):
    shards = VectorShards.of(*toy([]), tmp_path / "i")
    assert (len(shards), shards.missing(), shards.make(HashingEncoder(32), [0])) == (0, [], 0)
    index = build_index(*toy([]), HashingEncoder(32), tmp_path / "i", is_embedded=True)
    np.testing.assert_array_equal(index.vectors, np.zeros((0, 32), np.float32))
