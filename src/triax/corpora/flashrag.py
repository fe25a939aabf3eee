"""FlashRAG's layout: questions {id, question, golden_answers}, passages {id, contents}."""

from collections.abc import Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from triax.corpora.corpus import Corpus, build_corpus, unique_texts
from triax.corpora.jsonl import read_rows
from triax.records.documents import Document
from triax.records.questions import Question


def load_flashrag(
    questions: str | Path, corpus: str | Path, limit: int | None = None, name: str | None = None
) -> Corpus:
    """Reads a question file and a corpus file, each .jsonl or .jsonl.gz (Jin et al., 2024).

    FlashRAG's passages are cut from Wikipedia on their own and its questions do not point at them,
    so there is no gold document. The default name is that of the question file's folder.

    Raises:
        ValueError: a line lacks a field; the message names file and object.
    """
    questions, corpus = Path(questions), Path(corpus)
    documents = (read_passage(row) for row in read_rows(corpus, ["contents"]))
    asked = (read_question(row) for row in read_rows(questions, ["question"]))
    return build_corpus(name or questions.parent.name, documents, islice(asked, limit))


def read_passage(row: Mapping[str, Any]) -> Document:
    """Splits `contents` at the first line end into title and text; the title loses its quotes.

    A passage of one line is text without a title.
    """
    first, newline, rest = row["contents"].partition("\n")
    if not newline:
        return Document(str(row["id"]), first)
    title = first.strip()
    if len(title) > 1 and title[0] == title[-1] == '"':
        title = title[1:-1]
    return Document(str(row["id"]), rest, title)


def read_question(row: Mapping[str, Any]) -> Question:
    """A question; `metadata.type` is its kind where there is one."""
    metadata = row.get("metadata")
    kind = metadata.get("type") if isinstance(metadata, Mapping) else None
    answers = row.get("golden_answers") or ()
    return Question(
        str(row["id"]),
        row["question"],
        answers=unique_texts([answers] if isinstance(answers, str) else answers),
        kind=kind if isinstance(kind, str) else "",
    )
