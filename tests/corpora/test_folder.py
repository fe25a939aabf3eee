"""Tests of triax.corpora.folder."""

import pytest

from triax.corpora.folder import find_files, heading, load_folder
from triax.records.documents import Document


@pytest.fixture
def folder(tmp_path):
    root = tmp_path / "texts"
    (root / "sub" / ".git").mkdir(parents=True)
    (root / "b.txt").write_text("# no heading here\nПривет, café", encoding="utf-8")
    (root / "sub" / "a.md").write_text(
        "\ufefftext\n```\n# comment\n```\n## The *Title* ##\nmore", encoding="utf-8"
    )
    (root / "sub" / ".git" / "c.txt").write_text("hidden", encoding="utf-8")
    (root / "image.png").write_bytes(b"\x89PNG")
    return root


def test_files_become_documents(folder):
    corpus = load_folder(folder)
    assert corpus.name == "texts" and corpus.questions == ()
    assert corpus.documents == (
        Document("b.txt", "# no heading here\nПривет, café", "b"),
        Document("sub/a.md", "text\n```\n# comment\n```\n## The *Title* ##\nmore", "The *Title*"),
    )


def test_heading():
    assert heading("x\n   # A b #\n# C") == "A b"
    assert heading("#hash\n####### seven\n    # code") is None


def test_questions_are_optional_and_numbered(folder):
    (folder / "questions.jsonl").write_text(
        '{"question": "A?", "answer": "x"}\n{"id": "z", "question": "B?", "answers": ["y", "z"]}\n'
        '{"question": "C?"}',
        encoding="utf-8",
    )
    found = load_folder(folder).questions
    assert [(one.id, one.answers) for one in found] == [
        ("q1", ("x",)),
        ("z", ("y", "z")),
        ("q3", ()),
    ]
    assert len(load_folder(folder, limit=2).questions) == 2
    assert load_folder(folder, questions=None).questions == ()


def test_r07_a_file_that_is_not_utf8_is_named(folder):
    (folder / "old.txt").write_bytes("café".encode("latin-1"))
    with pytest.raises(ValueError, match=r"old.txt is not UTF-8 \(byte 3"):
        load_folder(folder)


def test_r24_links_out_of_the_folder_are_refused(folder, tmp_path):
    (tmp_path / "secret.txt").write_text("secret", encoding="utf-8")
    link = folder / "link.txt"
    link.symlink_to(tmp_path / "secret.txt")
    with pytest.raises(ValueError, match="leads out of"):
        load_folder(folder)
    link.unlink()
    (folder / "up").symlink_to(tmp_path, target_is_directory=True)
    with pytest.raises(ValueError, match="leads out of"):
        load_folder(folder)
    (folder / "up").unlink()
    (tmp_path / "q.jsonl").write_text('{"question": "x"}', encoding="utf-8")
    with pytest.raises(ValueError, match="leads out of"):
        load_folder(folder, questions="../q.jsonl")


def test_r24_links_inside_are_not_followed_in_circles(folder):
    (folder / "sub" / "loop").symlink_to(folder, target_is_directory=True)
    (folder / "twin.txt").symlink_to(folder / "b.txt")
    assert [path.name for path in find_files(folder)] == ["b.txt", "a.md", "twin.txt"]


def test_r09_a_folder_without_texts_and_no_folder(tmp_path):
    assert load_folder(tmp_path).documents == ()
    with pytest.raises(NotADirectoryError, match="is no folder"):
        load_folder(tmp_path / "none")
