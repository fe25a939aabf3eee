"""BEIR's layout: corpus.jsonl, queries.jsonl and qrels/<split>.tsv (Thakur et al., 2021)."""

import csv
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from triax.corpora.corpus import Corpus, build_corpus, unique_texts
from triax.corpora.jsonl import read_rows
from triax.records.documents import Document
from triax.records.questions import Question


def load_beir(
    folder: str | Path, split: str = "test", limit: int | None = None, name: str | None = None
) -> Corpus:
    """Reads a BEIR data set; only queries that the split's qrels judge are questions, as in BEIR.

    A document with a score above 0 is gold; grades are not kept. Answers are taken from
    `metadata.answer` or `metadata.answers` where queries have them. The .jsonl files may be
    gzipped.

    Raises:
        FileNotFoundError: a file is missing.
        ValueError: a line of the qrels has not three columns, or names a query that is not there.
    """
    folder = Path(folder)
    documents = (
        Document(str(row["_id"]), row["text"], row.get("title") or "")
        for row in read_rows(_either(folder / "corpus.jsonl"), ["text"], "_id")
    )
    gold: dict[str, list[str]] = {}
    path = folder / "qrels" / f"{split}.tsv"
    for query, document, score in read_qrels(path):
        gold.setdefault(query, [])
        if score > 0:
            gold[query].append(document)
    rows = read_rows(_either(folder / "queries.jsonl"), ["text"], "_id")
    queries = {str(row["_id"]): row for row in rows}
    if unknown := sorted(set(gold) - set(queries)):
        raise ValueError(
            f"{path} judges {len(unknown)} queries that queries.jsonl lacks, e.g. {unknown[:3]}; "
            "use the two files of one release"
        )
    questions = (_question(queries[query], gold[query]) for query in queries if query in gold)
    return build_corpus(name or folder.name, documents, islice(questions, limit))


def read_qrels(path: Path | str) -> Iterator[tuple[str, str, int]]:
    """Yields query id, document id and score; the first line is the header.

    Raises:
        FileNotFoundError: no such split; the message lists those that are there.
        ValueError: a line has not three columns or its score is no whole number.
    """
    path = Path(path)
    if not path.is_file():
        there = ", ".join(sorted(one.stem for one in path.parent.glob("*.tsv"))) or "none"
        raise FileNotFoundError(f"{path} is missing; splits in that folder: {there}")
    with path.open(encoding="utf-8", newline="") as stream:
        lines = csv.reader(stream, delimiter="\t", quoting=csv.QUOTE_NONE)
        next(lines, None)
        for number, line in enumerate(lines, 2):
            if not line:
                continue
            try:
                query, document, score = line
                yield query, document, int(score)
            except ValueError:
                raise ValueError(
                    f"{path}:{number}: {line!r}; expected query id, document id, whole number"
                ) from None


def _question(row: dict[str, Any], gold: list[str]) -> Question:
    metadata = row.get("metadata") or {}
    answers = metadata.get("answers") or metadata.get("answer") or ()
    answers = [answers] if isinstance(answers, str) else answers
    return Question(
        str(row["_id"]),
        row["text"],
        answers=unique_texts(answers if isinstance(answers, list | tuple) else ()),
        gold_document_ids=tuple(gold),
    )


def _either(path: Path) -> Path:
    zipped = path.with_name(path.name + ".gz")
    if not path.is_file() and not zipped.is_file():
        raise FileNotFoundError(f"neither {path} nor {zipped.name} is there; BEIR needs one")
    return path if path.is_file() else zipped
