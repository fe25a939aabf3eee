from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from triax.runs.artifacts import artifact_folder

NAMES = ("index", "demo", "lines")


def test_the_hash_is_of_the_sorted_inputs():
    folder = artifact_folder("root", *NAMES, {"b": 1, "a": ["é"]})
    # printf '{"a": ["é"], "b": 1}' | sha256sum
    assert folder == Path("root/index/demo/lines-82b62b13edce")
    assert folder == artifact_folder(Path("root"), *NAMES, {"a": ["é"], "b": 1})


@pytest.mark.parametrize("other", [{"a": 2}, {"a": "1"}, {"a": 1, "b": None}, {}, {"a": {"b": 1}}])
def test_r28_other_inputs_give_another_folder(other):
    assert artifact_folder("r", *NAMES, {"a": 1}) != artifact_folder("r", *NAMES, other)


@pytest.mark.parametrize(
    "name", ["..", "../..", "/etc", "a/b", "a\\b", "", ".", "~", "a\0b", "-", ".hidden", "a\nb"]
)
def test_r24_no_name_leaves_the_root(tmp_path, name):
    for names in ((name, "b", "c"), ("a", name, "c"), ("a", "b", name)):
        folder = artifact_folder(tmp_path, *names, {})
        assert folder.resolve().is_relative_to(tmp_path)
        assert len(folder.relative_to(tmp_path).parts) == 3
        folder.mkdir(parents=True, exist_ok=True)


@given(st.text(max_size=300), st.text(max_size=300), st.text(max_size=300))
def test_r24_no_text_leaves_the_root(kind, corpus, variant):
    parts = artifact_folder("/root", kind, corpus, variant, {}).relative_to("/root").parts
    assert len(parts) == 3
    assert not {"..", "."} & set(parts)
    assert all(0 < len(part.encode("utf-8", "surrogatepass")) <= 255 for part in parts)


def test_names_stay_readable():
    folder = artifact_folder("r", "triplets", "2wikimultihopqa", "lines_v1.2-b", {})
    assert folder.parts[:3] == ("r", "triplets", "2wikimultihopqa")
    assert folder.name.startswith("lines_v1.2-b-")


def test_the_home_of_the_root_is_expanded(monkeypatch):
    monkeypatch.setenv("HOME", "/somewhere")
    assert artifact_folder("~/x", *NAMES, {}).parts[:3] == ("/", "somewhere", "x")


def test_inputs_that_are_no_json_are_refused():
    with pytest.raises(TypeError):
        artifact_folder("r", *NAMES, {"a": object()})
