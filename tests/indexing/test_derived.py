import json

import pytest

from triax.extraction.verbalize import propositions
from triax.indexing.derived import open_derived
from triax.indexing.hashing import HashingEncoder
from triax.indexing.updates import build_index
from triax.records.documents import Chunk
from triax.records.triplets import Extraction, Triplet
from triax.records.usage import Usage


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    facts = propositions([Extraction("a", (Triplet("A", "b", "C"),))])
    folder = tmp_path_factory.mktemp("derived") / "index"
    return build_index([Chunk("a", "a", "A b C")], facts, HashingEncoder(16), folder, extractor="t")


def test_it_is_made_once_and_tells_its_cost(index):
    calls = []

    def build(folder):
        calls.append(folder)
        (folder / "x.txt").write_text("made", encoding="utf-8")
        return Usage(2, 1, 30, 4, 0.5)

    for _ in range(2):
        found = open_derived(index, "once", {"size": 3}, build)
        assert (found.folder / "x.txt").read_text(encoding="utf-8") == "made"
        assert found.cost == Usage(2, 1, 30, 4, 0.5)
        assert found.manifest["settings"] == {"size": 3}
    assert len(calls) == 1
    assert found.folder.parent.name == f"{index.folder.name}.once"


def test_r28_other_settings_are_another_folder(index):
    found = {
        open_derived(index, "kind", {"size": size}, lambda _: Usage()).folder for size in (1, 2, 1)
    }
    assert len(found) == 2


def test_r04_what_was_done_before_a_kill_is_there_again(index):
    def killed(folder):
        (folder / "part").write_text("1", encoding="utf-8")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        open_derived(index, "killed", {}, killed)

    def build(folder):
        assert (folder / "part").read_text(encoding="utf-8") == "1"
        return Usage()

    found = open_derived(index, "killed", {}, build)
    names = sorted(path.name for path in found.folder.parent.iterdir())
    assert names == [found.folder.name, f"{found.folder.name}.lock"]


def test_another_schema_is_refused(index):
    found = open_derived(index, "old", {}, lambda _: Usage())
    manifest = dict(found.manifest) | {"schema": 0}
    (found.folder / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    with pytest.raises(ValueError, match="schema 0, expected 1"):
        open_derived(index, "old", {}, lambda _: Usage())
