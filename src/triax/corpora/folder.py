"""A plain folder of .txt and .md files as a corpus."""

import os
import re
from collections.abc import Iterator
from pathlib import Path

from triax.corpora.corpus import Corpus, build_corpus, unique_texts
from triax.corpora.jsonl import read_rows
from triax.records.documents import Document
from triax.records.questions import Question

SUFFIXES = (".txt", ".md")
_HEADING = re.compile(r" {0,3}#{1,6}[ \t]+(.+?)[ \t]*#*[ \t]*")
_FENCE = re.compile(r" {0,3}(?:```|~~~)")


def load_folder(
    folder: str | Path,
    questions: str | None = "questions.jsonl",
    limit: int | None = None,
    name: str | None = None,
) -> Corpus:
    """Reads every .txt and .md file below a folder; names that begin with a dot are passed over.

    A document's id is its path inside the folder; its title the first Markdown heading, else the
    file's name without the suffix. The questions file is optional: one object a line with
    `question` and, where known, `id`, `answer` or `answers`.

    Raises:
        NotADirectoryError: the folder is not there.
        ValueError: a file is not UTF-8, or a link leads out of the folder (R24).
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise NotADirectoryError(f"{folder} is no folder; expected one with .txt and .md files")
    documents = (_read(path, folder) for path in find_files(folder))
    return build_corpus(
        name or folder.resolve().name, documents, _questions(folder, questions, limit)
    )


def find_files(folder: str | Path) -> Iterator[Path]:
    """The text files below a folder in the order of their paths; a linked folder is not entered.

    Raises:
        ValueError: a link leads out of the folder.
    """
    root = Path(folder)
    found = []
    for parent, subfolders, files in os.walk(root, followlinks=False):
        subfolders[:] = [one for one in subfolders if not one.startswith(".")]
        for linked in subfolders:
            _inside(Path(parent) / linked, root)
        for file in files:
            path = Path(parent) / file
            if not file.startswith(".") and path.suffix.lower() in SUFFIXES:
                _inside(path, root)
                if path.is_file():
                    found.append(path)
    yield from sorted(found, key=lambda path: path.relative_to(root).as_posix())


def heading(text: str) -> str | None:
    """The first Markdown heading (`#` to `######`) outside fenced code."""
    is_fenced = False
    for line in text.splitlines():
        if _FENCE.match(line):
            is_fenced = not is_fenced
        elif not is_fenced and (found := _HEADING.fullmatch(line)):
            return found[1]
    return None


def _read(path: Path, root: Path) -> Document:
    text = _text(path)
    title = (heading(text) if path.suffix.lower() == ".md" else None) or path.stem
    return Document(path.relative_to(root).as_posix(), text, title)


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{path} is not UTF-8 (byte {error.start}: {error.reason}); convert it, for example "
            f"with iconv -f latin1 -t utf-8"
        ) from None


def _inside(path: Path, root: Path) -> None:
    target = path.resolve()
    if not target.is_relative_to(root.resolve()):
        raise ValueError(f"{path} leads out of {root}, to {target}; copy what is meant to be read")


def _questions(folder: Path, file: str | None, limit: int | None) -> Iterator[Question]:
    if file is None or not (path := folder / file).exists():
        return
    _inside(path, folder)
    for number, row in enumerate(read_rows(path, ["question"], id_field=None), 1):
        if limit is not None and number > limit:
            return
        answers = row.get("answers", row.get("answer"))
        answers = answers if isinstance(answers, list) else [answers]
        yield Question(str(row.get("id") or f"q{number}"), row["question"], unique_texts(answers))
