import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from triax.indexing.hashing import HashingEncoder
from triax.indexing.updates import add, build_index, delete
from triax.records.documents import Chunk

A, B = ["ada", "curie", "empty"], ["babbage", "london"]


class Counting(HashingEncoder):
    def __init__(self):
        super().__init__(32)
        self.texts = []

    def encode(self, texts, role="passage"):
        self.texts += texts
        return super().encode(texts, role)


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_vectors_are_those_of_the_texts(tmp_path, toy, dtype):
    index = build_index(*toy(A + B), HashingEncoder(32), tmp_path / "i", dtype=dtype)
    texts = [p.text for p in index.tables.all_propositions()]
    passages = [chunk.passage for chunk in index.tables.all_chunks()]
    assert index.vectors.dtype == index.chunk_vectors.dtype == dtype
    np.testing.assert_allclose(index.vectors, HashingEncoder(32).encode(texts), atol=1e-3)
    np.testing.assert_allclose(index.chunk_vectors, HashingEncoder(32).encode(passages), atol=1e-3)
    assert [path.name for path in tmp_path.iterdir()] == ["i"]


def test_progress_counts_on_over_both_stages(tmp_path, toy):
    told = []
    index = build_index(*toy(A + B), HashingEncoder(32), tmp_path / "i", progress=told.append)
    texts = {p.text for p in index.tables.all_propositions()}
    passages = {chunk.passage for chunk in index.tables.all_chunks()}
    assert told == [len(texts), len(texts) + len(passages)]


def test_r18_the_order_of_documents_does_not_change_a_byte(tmp_path, toy):
    one = build_index(*toy(A + B), HashingEncoder(32), tmp_path / "one")
    other = build_index(*toy((B + A)[::-1]), HashingEncoder(32), tmp_path / "other")
    assert files(one.folder) == files(other.folder)


def test_r10_adding_equals_building_and_embeds_only_what_is_new(tmp_path, toy):
    whole = build_index(*toy(A + B), HashingEncoder(32), tmp_path / "whole")
    first = build_index(*toy(A), HashingEncoder(32), tmp_path / "first")
    encoder = Counting()
    both = add(first, *toy(B), encoder, tmp_path / "both")
    assert files(both.folder) == files(whole.folder)
    probe = first.tables.proposition(0).text
    new = {"Charles Babbage designed the engine", "Babbage born in London"}
    new |= {"London lies on the Thames", "Babbage\nAll about babbage.", "London\nAll about london."}
    assert sorted(encoder.texts) == sorted({*new, probe})


def test_r10_deleting_equals_never_having_added(tmp_path, toy):
    whole = build_index(*toy(A + B), HashingEncoder(32), tmp_path / "whole")
    first = build_index(*toy(A), HashingEncoder(32), tmp_path / "first")
    left = delete(whole, B, tmp_path / "left")
    assert files(left.folder) == files(first.folder)
    kept = [p for p in left.tables.all_propositions() if p.text == "Ada born in London"]
    assert [p.chunk_ids for p in kept] == [("ada-0",)]
    assert delete(whole, A + B, tmp_path / "nothing").vectors.shape == (0, 32)


def test_changes_that_cannot_be_are_refused(tmp_path, toy):
    index = build_index(*toy(A), HashingEncoder(32), tmp_path / "i")
    with pytest.raises(ValueError, match=r"documents \['nobody'\] are not in"):
        delete(index, ["ada", "nobody"], tmp_path / "j")
    with pytest.raises(ValueError, match="'hashing-32' there, 'hashing-64' given"):
        add(index, *toy(B), HashingEncoder(64), tmp_path / "j")
    with pytest.raises(ValueError, match="delete the old document first"):
        add(index, [Chunk("ada-0", "ada", "Changed.")], [], HashingEncoder(32), tmp_path / "j")
    with pytest.raises(ValueError, match="inputs: .* there, .* given"):
        add(index, *toy(B), HashingEncoder(32), index.folder)
    assert not (tmp_path / "j").exists()


def test_r28_an_index_of_the_same_inputs_is_opened_and_of_others_refused(tmp_path, toy):
    build_index(*toy(A), HashingEncoder(32), tmp_path / "i")
    encoder = Counting()
    again = build_index(*toy(A[::-1]), encoder, tmp_path / "i")
    assert len(encoder.texts) == 1 and again.tables.chunks.num_rows == 3
    with pytest.raises(ValueError, match="inputs: .* there, .* given"):
        build_index(*toy(A + B), HashingEncoder(32), tmp_path / "i")
    with pytest.raises(ValueError, match="'hashing-32'.* there, .*'hashing-16'"):
        build_index(*toy(A), HashingEncoder(16), tmp_path / "i")


@pytest.mark.parametrize("names", [[], ["empty"]])
def test_r09_no_document_and_no_triplet(tmp_path, toy, names):
    index = build_index(*toy(names), HashingEncoder(32), tmp_path / "i")
    assert index.vectors.shape == (0, 32) and index.chunk_vectors.shape == (len(names), 32)
    grown = add(index, *toy(["ada"]), HashingEncoder(32), tmp_path / "j")
    assert grown.vectors.shape == (2, 32)


def test_r30_builders_at_once_give_one_sound_index(tmp_path, toy):
    def build(_):
        return build_index(*toy(A + B), HashingEncoder(32), tmp_path / "i")

    with ThreadPoolExecutor(6) as pool:
        indexes = list(pool.map(build, range(12)))
    assert all(index.vectors.shape == (7, 32) for index in indexes)
    whole = build_index(*toy(A + B), HashingEncoder(32), tmp_path / "whole")
    assert files(indexes[0].folder) == files(whole.folder)


CHILD = """
import os, signal, sys
sys.path.insert(0, sys.argv[2])
from conftest import corpus
from triax.indexing.hashing import HashingEncoder
from triax.indexing.updates import build_index
class Dying(HashingEncoder):
    def encode(self, texts, role="passage"):
        if any(text.startswith("Ada\\n") for text in texts):
            os.kill(os.getpid(), signal.SIGKILL)
        return super().encode(texts, role)
build_index(*corpus(["ada", "curie", "empty"]), Dying(32), sys.argv[1])
"""


def test_r04_a_killed_build_leaves_no_index_and_goes_on(tmp_path, toy):
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2] / "src")}
    command = [sys.executable, "-c", CHILD, str(tmp_path / "i"), str(Path(__file__).parent)]
    assert subprocess.run(command, env=environment).returncode == -signal.SIGKILL
    assert not (tmp_path / "i").exists()
    encoder = Counting()
    index = build_index(*toy(A), encoder, tmp_path / "i")
    assert all("\n" in text for text in encoder.texts), "propositions were embedded twice"
    whole = build_index(*toy(A), HashingEncoder(32), tmp_path / "whole")
    assert files(index.folder) == files(whole.folder)
