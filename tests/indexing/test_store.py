import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from triax.indexing.hashing import HashingEncoder
from triax.indexing.store import check_encoder, identity_of, load_index, read_manifest, save_index
from triax.indexing.tables import TripletTables

ENCODER = HashingEncoder(32)
DESCRIBED = {"name": "hashing-32", "dimension": 32}


@pytest.fixture
def saved(tmp_path, toy):
    tables = TripletTables.of(*toy(["ada", "babbage", "curie", "london", "empty"]))
    vectors = ENCODER.encode(tables.propositions["text"].to_pylist())
    chunk_vectors = ENCODER.encode([chunk.passage for chunk in tables.all_chunks()])
    identity = identity_of(tables, DESCRIBED, "float32", "passage", "by hand", True)

    def save(name="index", **changes):
        save_index(tmp_path / name, tables, vectors, chunk_vectors, {**identity, **changes})
        return tmp_path / name

    save.tables, save.vectors, save.chunk_vectors = tables, vectors, chunk_vectors
    return save


def test_what_is_loaded_is_what_was_saved(saved):
    index = load_index(saved(), ENCODER)
    assert index.tables.all_chunks() == saved.tables.all_chunks()
    assert index.tables.all_propositions() == saved.tables.all_propositions()
    np.testing.assert_array_equal(index.vectors, saved.vectors)
    np.testing.assert_array_equal(index.chunk_vectors, saved.chunk_vectors)
    assert isinstance(index.vectors, np.memmap)


def test_r05_the_manifest_says_what_it_was_made_from(saved):
    manifest = read_manifest(saved())
    assert manifest["encoder"] == DESCRIBED and manifest["normalisation"] == "l2"
    assert (manifest["dtype"], manifest["role"]) == ("float32", "passage")
    assert manifest["extractor"] == "by hand"
    assert manifest["counts"] == {"chunks": 5, "propositions": 7, "sources": 8}
    assert set(manifest["inputs"]) == {"chunks", "propositions"}
    assert len(manifest["files"]) == 4


def test_r05_another_encoder_fails_at_once_with_both_values_and_the_fix(saved):
    folder = saved()
    with pytest.raises(ValueError) as caught:
        load_index(folder, HashingEncoder(64))
    for part in ("dimension: 32 there, 64 given", "'hashing-32'", "'hashing-64'", "build it again"):
        assert part in str(caught.value)


def test_r05_another_encoder_of_the_same_name_is_found_out_by_one_row(saved):
    class Unscaled(HashingEncoder):
        def encode(self, texts, role="passage"):
            return 2 * super().encode(texts, role)

    index = load_index(saved())
    with pytest.raises(ValueError, match=r"norm 2\).*another vector.*norm 1,.*build it again"):
        check_encoder(index, Unscaled(32))
    check_encoder(index, Unscaled(32), probes=False)


def test_r05_vectors_that_are_not_of_length_one_are_said_to_be_so(tmp_path, saved):
    identity = identity_of(saved.tables, DESCRIBED, "float32", "passage", "", False)
    save_index(tmp_path / "long", saved.tables, 3 * saved.vectors, None, identity)
    assert read_manifest(tmp_path / "long")["normalisation"] == "none"
    assert load_index(tmp_path / "long").chunk_vectors is None


@pytest.mark.parametrize("name", ["chunks.parquet", "propositions.parquet", "vectors.npy"])
def test_r05_a_truncated_altered_or_missing_file_is_refused(saved, name):
    path = saved() / name
    whole = path.read_bytes()
    path.write_bytes(whole[:-1])
    with pytest.raises(ValueError, match=f"{name} has {len(whole) - 1} bytes, expected"):
        load_index(path.parent, is_verified=False)
    path.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    with pytest.raises(ValueError, match=f"{name} was altered"):
        load_index(path.parent)
    path.unlink()
    with pytest.raises(ValueError, match=f"{name} has None bytes"):
        load_index(path.parent)


def test_no_index_or_another_schema_is_refused(tmp_path, saved):
    with pytest.raises(FileNotFoundError, match="expected an index"):
        load_index(tmp_path / "nothing")
    path = saved() / "manifest.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "schema": 99}))
    with pytest.raises(ValueError, match="has schema 99, expected 1"):
        load_index(path.parent)


def test_r28_an_index_of_other_inputs_is_not_overwritten(tmp_path, saved):
    folder = saved()
    before = (folder / "manifest.json").read_bytes()
    with pytest.raises(ValueError, match="extractor: 'by hand' there, 'prompted' given"):
        saved(extractor="prompted")
    assert (folder / "manifest.json").read_bytes() == before
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "diary.txt").write_text("mine")
    with pytest.raises(FileExistsError, match="is no index"):
        saved("notes")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["index", "notes"]


def test_r30_many_writers_at_once_leave_one_sound_index(saved):
    with ThreadPoolExecutor(8) as pool:
        folders = list(pool.map(lambda _: saved(), range(8)))
    assert load_index(folders[0], ENCODER).tables.propositions.num_rows == 7
    assert [path.name for path in folders[0].parent.iterdir()] == ["index"]


CHILD = """
import sys
from triax.indexing.hashing import HashingEncoder
from triax.indexing.store import load_index
from triax.retrieval.adaptive import AdaptiveRetriever
encoder = HashingEncoder(32)
found, = AdaptiveRetriever(load_index(sys.argv[1], encoder), encoder).search([["Ada London"]], 2)
print(*(scored.chunk.id for scored in found.chunks))
"""


def test_r21_a_fresh_process_loads_and_queries(saved):
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2] / "src")}
    child = subprocess.run(
        [sys.executable, "-c", CHILD, str(saved())], env=environment, capture_output=True, text=True
    )
    assert child.stdout.split() == ["ada-0", "london-0"], child.stderr
