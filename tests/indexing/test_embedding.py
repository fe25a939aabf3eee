import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from triax.indexing.embedding import (
    embed,
    embed_shards,
    fingerprint,
    missing_shards,
    num_shards,
    refuse_mismatch,
)
from triax.indexing.hashing import HashingEncoder

TEXTS = [f"text number {i % 37}" for i in range(60)]

CHILD = """
import os, signal, sys
from triax.indexing.embedding import embed
from triax.indexing.hashing import HashingEncoder
def progress(done):
    if done >= 20:
        os.kill(os.getpid(), signal.SIGKILL)
embed([f"text number {i % 37}" for i in range(60)], HashingEncoder(16), sys.argv[1],
      progress=progress, shard_size=10)
"""


class Counting(HashingEncoder):
    def __init__(self, dimension=16):
        super().__init__(dimension)
        self.calls = []

    def encode(self, texts, role="passage"):
        self.calls.append((list(texts), role))
        return super().encode(texts, role)


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_gives_one_row_a_text_and_encodes_each_once(tmp_path):
    encoder, done = Counting(), []
    rows = embed(TEXTS, encoder, tmp_path, "query", done.append, shard_size=10)
    np.testing.assert_array_equal(rows, HashingEncoder(16).encode(TEXTS))
    assert [len(texts) for texts, _ in encoder.calls] == [10, 10, 10, 7]
    assert {role for _, role in encoder.calls} == {"query"}
    assert done == [10, 20, 30, 37]
    assert embed([], encoder, tmp_path / "none").shape == (0, 16)


def test_r04_a_killed_run_goes_on_and_gives_the_same_bytes(tmp_path):
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    expected = embed(TEXTS, HashingEncoder(16), whole, shard_size=10)
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2] / "src")}
    child = subprocess.run([sys.executable, "-c", CHILD, str(broken)], env=environment)
    assert child.returncode == -signal.SIGKILL
    assert len(list(broken.glob("shard-*.npy"))) == 2
    encoder = Counting()
    rows = embed(TEXTS, encoder, broken, shard_size=10)
    assert rows.tobytes() == expected.tobytes()
    assert [len(texts) for texts, _ in encoder.calls] == [10, 7]
    assert files(broken) == files(whole)


def test_shards_made_apart_are_those_of_one_run(tmp_path):
    whole, apart = tmp_path / "whole", tmp_path / "apart"
    expected = embed(TEXTS, HashingEncoder(16), whole, shard_size=10)
    assert num_shards(TEXTS, 10) == 4 and missing_shards(TEXTS, apart, 10) == [0, 1, 2, 3]
    done = []
    made = embed_shards(TEXTS, HashingEncoder(16), apart, [3, 1, 9], "passage", done.append, 10)
    assert (made, done, missing_shards(TEXTS, apart, 10)) == (2, [1, 2, 3], [0, 2])
    assert embed_shards(TEXTS, HashingEncoder(16), apart, range(4), shard_size=10) == 2
    assert files(apart) == files(whole)
    encoder = Counting()
    rows = embed(TEXTS, encoder, apart, shard_size=10)
    assert rows.tobytes() == expected.tobytes() and encoder.calls == []
    with pytest.raises(ValueError, match=r"'hashing-16'} there, .*'hashing-32'"):
        embed_shards(TEXTS, HashingEncoder(32), apart, [0], shard_size=10)


def test_r30_a_folder_that_another_claims_meanwhile_is_no_foreign_one(tmp_path, monkeypatch):
    """The other writes manifest and shard between this one's two looks."""
    exists = Path.exists

    def late(path):
        found = exists(path)
        if path == tmp_path / "i" / "manifest.json" and not found:
            monkeypatch.setattr(Path, "exists", exists)
            embed(TEXTS, HashingEncoder(16), tmp_path / "i")
        return found

    monkeypatch.setattr(Path, "exists", late)
    embed_shards(TEXTS, HashingEncoder(16), tmp_path / "i", [0])
    assert missing_shards(TEXTS, tmp_path / "i") == []


def test_r28_other_texts_or_another_encoder_are_refused_by_name(tmp_path):
    embed(TEXTS, HashingEncoder(16), tmp_path)
    with pytest.raises(ValueError, match=r"'hashing-16'.*there.*'hashing-32'.*given.*another fold"):
        embed(TEXTS, HashingEncoder(32), tmp_path)
    with pytest.raises(ValueError, match=r"num_texts: 37 there, 2 given; texts_sha256: "):
        embed(["a", "b"], HashingEncoder(16), tmp_path)
    with pytest.raises(ValueError, match="role: 'passage' there, 'query' given"):
        embed(TEXTS, HashingEncoder(16), tmp_path, "query")


def test_an_altered_truncated_or_foreign_shard_is_refused(tmp_path):
    embed(TEXTS, HashingEncoder(16), tmp_path)
    (shard,) = tmp_path.glob("shard-*.npy")
    whole = shard.read_bytes()
    shard.write_bytes(whole[:-1] + b"\x01")
    with pytest.raises(ValueError, match="was altered"):
        embed(TEXTS, HashingEncoder(16), tmp_path)
    shard.write_bytes(whole[:-8])
    with pytest.raises(ValueError, match="cannot be read"):
        embed(TEXTS, HashingEncoder(16), tmp_path)
    (tmp_path / "manifest.json").unlink()
    with pytest.raises(ValueError, match="shards without a manifest"):
        embed(TEXTS, HashingEncoder(16), tmp_path)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (np.zeros((1, 3), np.float32), r"gave shape \(1, 3\), expected \(1, 4\)"),
        (np.full((1, 4), np.nan, np.float32), "not finite for 'x'"),
    ],
)
def test_rows_of_a_wrong_shape_or_value_are_refused(tmp_path, rows, message):
    class Wrong:
        name, dimension = "wrong", 4

        def encode(self, texts, role="passage"):
            return rows

    with pytest.raises(ValueError, match=message):
        embed(["x"], Wrong(), tmp_path)


def test_what_an_encoder_says_of_itself_is_its_fingerprint():
    encoder = HashingEncoder(4)
    encoder.revision = "abc"
    assert fingerprint(encoder) == {"name": "hashing-4", "dimension": 4, "revision": "abc"}
    encoder.fingerprint = {"pooling": "mean", "prefixes": ("a", "b")}
    own = {"name": "hashing-4", "dimension": 4, "pooling": "mean", "prefixes": ["a", "b"]}
    assert fingerprint(encoder) == own
    del encoder.fingerprint
    with pytest.raises(ValueError, match=r"place .*revision: None there, 'abc' given\); do this"):
        refuse_mismatch("place", fingerprint(HashingEncoder(4)), fingerprint(encoder), "do this")
