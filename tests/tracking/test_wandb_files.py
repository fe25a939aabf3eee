import json
import os
import subprocess
import sys

import pytest

from triax.tracking.tracker import Artifact
from triax.tracking.wandb_files import files_of, make_artifact, make_table, safe_name, staging_in

wandb = pytest.importorskip("wandb")


@pytest.fixture(autouse=True)
def staged(tmp_path, monkeypatch):
    monkeypatch.setenv("WANDB_DATA_DIR", str(tmp_path / "staged"))


@pytest.fixture
def folder(tmp_path):
    made = tmp_path / "made"
    (made / "sub").mkdir(parents=True)
    (made / "wandb" / "offline-run-1").mkdir(parents=True)
    for name in ("b.bin", "sub/a.txt", ".lock", "wandb.json", "wandb/offline-run-1/x.wandb"):
        (made / name).write_bytes(b"x" * 1000)
    return made


def test_a_table_has_the_keys_of_all_rows_in_order():
    rows = [{"id": "a", "em": 1.0}, {"id": "b", "answers": ["é", "y"], "em": 0}, {"n": None}]
    table = make_table(wandb, rows)
    assert table.columns == ["id", "em", "answers", "n"]
    assert table.data == [
        ["a", 1.0, None, None],
        ["b", 0, '["é", "y"]', None],
        [None, None, None, None],
    ]


def test_small_artifacts_are_sent_whole(folder):
    made = Artifact("index a", "index", "ab", folder, counts={"chunks": 2}, inputs={"t": "cd"})
    artifact = make_artifact(wandb, made, max_upload_mb=0.002)
    entries = artifact.manifest.entries
    assert (artifact.name, artifact.type) == ("index_a", "index")
    assert set(entries) == {"b.bin", "sub/a.txt", "facts.json"}
    assert entries["b.bin"].local_path == str(folder / "b.bin")
    assert all(entry.ref is None for entry in entries.values())
    facts = {"hash": "ab", "counts": {"chunks": 2}, "inputs": {"t": "cd"}}
    assert artifact.metadata == facts | {"files_are_sent": True, "bytes": 2000}
    with open(entries["facts.json"].local_path) as stream:
        assert json.load(stream) == facts


def test_large_ones_are_named_by_path(folder, caplog):
    caplog.set_level("INFO", "triax.tracking.wandb_files")
    artifact = make_artifact(wandb, Artifact("index-a", "index", "ab", folder), 0.0019)
    entries = artifact.manifest.entries
    assert {name: entry.ref for name, entry in entries.items()} == {
        "b.bin": (folder / "b.bin").as_uri(),
        "sub/a.txt": (folder / "sub" / "a.txt").as_uri(),
        "facts.json": None,
    }
    assert artifact.metadata["files_are_sent"] is False
    assert "W&B gets the paths only" in caplog.text


def test_another_digest_is_another_version_though_no_file_differs():
    """A corpus has no folder of ours; W&B makes a version where the content differs."""
    one, same, other = (
        make_artifact(wandb, Artifact("corpus-a", "corpus", digest), 1).digest
        for digest in ("ab", "ab", "cd")
    )
    assert one == same != other


def test_named_files_are_those_that_there_are(folder):
    made = Artifact("answers", "answers", "ab", folder, ("sub/a.txt", "gone", "b.bin"))
    assert list(files_of(made)) == [folder / "sub" / "a.txt", folder / "b.bin"]


def test_a_long_name_keeps_its_end():
    assert safe_name("x" * 200 + "-12ab") == "x" * 123 + "-12ab"


def test_copies_lie_where_the_user_says_or_in_the_folder(tmp_path, monkeypatch):
    with staging_in(tmp_path / "run"):
        assert os.environ["WANDB_DATA_DIR"] == str(tmp_path / "staged")
    monkeypatch.delenv("WANDB_DATA_DIR")
    with pytest.raises(OSError), staging_in(tmp_path / "run"):
        assert os.environ["WANDB_DATA_DIR"] == str(tmp_path / "run")
        raise OSError
    assert "WANDB_DATA_DIR" not in os.environ


def test_the_module_loads_no_w_and_b():
    program = "import sys, triax.tracking.wandb, triax.tracking.wandb_files\n"
    program += "print('wandb' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "False"
