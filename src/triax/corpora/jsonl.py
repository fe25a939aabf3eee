"""Questions and passages as JSON lines, in the fields that the README of the data folder names."""

import json
import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from triax.corpora.corpus import Corpus, build_corpus, content_id, tidy_documents, unique_texts
from triax.corpora.gold import GoldIndex
from triax.records.documents import Document
from triax.records.files import read_jsonl
from triax.records.query_triplets import QueryTriplet
from triax.records.questions import Question, Step
from triax.records.text import clean
from triax.records.triplets import Triplet

logger = logging.getLogger(__name__)

Row = Mapping[str, Any]


def load_jsonl(
    folder: str | Path,
    split: str | Sequence[str] = "dev",
    questions: str = "{split}.jsonl.gz",
    corpus: str | None = "corpus.jsonl.gz",
    documents_in: str | None = None,
    only: Mapping[str, Any] | None = None,
    limit: int | None = None,
    with_gold: bool = True,
    name: str | None = None,
) -> Corpus:
    """Reads a folder of .jsonl or .jsonl.gz files.

    Args:
        folder: where the files are.
        split: one split, or several that are read one after the other.
        questions: file name of a split's questions; `{split}` is filled in.
        corpus: file name of the passages (`id`, `title`, `text`); None pools the paragraphs that
            the questions bring along.
        documents_in: a further file; only passages whose id occurs in it are kept. It cuts a
            corpus down to what an extraction covers.
        only: keeps questions whose fields have these values, e.g. `{"source": "x"}`; a list of
            values means any of them.
        limit: keeps the first questions of those; the passages stay all.
        with_gold: False leaves the gold documents out, for data whose titles name many passages.
        name: default is the folder's name.

    Raises:
        FileNotFoundError: a file is missing; the message lists the files that are there.
        ValueError: a line cannot be read, or no question is left after `only`.
    """
    folder = Path(folder)
    splits = [split] if isinstance(split, str) else list(split)
    rows = [
        row
        for part in splits
        for row in read_rows(folder / questions.replace("{split}", part), ["question"])
    ]
    selected = rows if only is None else [row for row in rows if _fits(row, only)]
    if rows and not selected:
        known = {field: sorted({str(row.get(field)) for row in rows})[:20] for field in only or ()}
        raise ValueError(f"{folder}: no question fits {dict(only or {})}; there is {known}")
    if corpus is None:
        passages: Iterable[Document] = _own_paragraphs(rows)
    else:
        passages = map(read_document, read_rows(folder / corpus, ["text"]))
    if documents_in is not None:
        wanted = {str(row["id"]) for row in read_rows(folder / documents_in, [])}
        passages = (passage for passage in passages if passage.id in wanted)
    documents = tidy_documents(passages)
    gold = GoldIndex(documents) if with_gold else None
    found = (read_question(row, gold) for row in islice(selected, limit))
    return build_corpus(name or folder.name, documents, found)


def read_document(row: Row) -> Document:
    """A passage; what is not `id`, `title` or `text` goes to the metadata."""
    metadata = {key: value for key, value in row.items() if key not in ("id", "title", "text")}
    return Document(str(row["id"]), row["text"], row.get("title") or "", metadata)


def read_question(row: Row, gold: GoldIndex | None = None) -> Question:
    """A question; its gold documents are those of the index, or stay unknown without one.

    The gold paragraphs are looked up by title and text where the row has them, else the titles of
    `supporting_facts`. What is not found goes to `unmatched_gold` under its title (R19).
    """
    ids: list[str] = []
    lost: list[str] = []
    for title, text in _gold_passages(row) if gold is not None else ():
        document_id = gold.find(title, text)
        ids.append(document_id) if document_id is not None else lost.append(title or text or "?")
    return Question(
        id=str(row["id"]),
        text=row["question"],
        answers=unique_texts([row.get("answer"), *(row.get("answer_aliases") or ())]),
        kind=row.get("type") or "",
        gold_document_ids=tuple(dict.fromkeys(ids)),
        unmatched_gold=tuple(dict.fromkeys(lost)),
        # Where a source gives none, those that were worked out from its passages.
        gold_triplets=tuple(
            Triplet(*fields)
            for fields in _triplets(
                row, "evidences" if row.get("evidences") else "evidences_derived"
            )
        ),
        gold_query_triplets=tuple(
            QueryTriplet.parse(*fields) for fields in _triplets(row, "query_triples")
        ),
        steps=tuple(_steps(row, gold)),
    )


def read_rows(
    path: str | Path, texts: Sequence[str], id_field: str | None = "id"
) -> Iterator[dict[str, Any]]:
    """The objects of a .jsonl or .jsonl.gz file, each with an id and with texts in these fields.

    Raises:
        FileNotFoundError: no such file; the message lists those that are there.
        ValueError: an object lacks a field; the message names file and object.
    """
    path = Path(path)
    if not path.is_file():
        there = ", ".join(sorted(one.name for one in path.parent.glob("*.jsonl*"))) or "none"
        raise FileNotFoundError(f"{path} is missing; .jsonl files in that folder: {there}")
    for number, row in enumerate(read_jsonl(path), 1):
        wrong = [field for field in texts if not isinstance(row.get(field), str)]
        if id_field is not None and not isinstance(row.get(id_field), str | int):
            wrong.append(id_field)
        if wrong:
            raise ValueError(
                f"{path}, object {number}: {wrong[0]!r} is missing or no text among the fields "
                f"{sorted(row)}; every object needs {[id_field, *texts]}"
            )
        yield row


def _fits(row: Row, only: Mapping[str, Any]) -> bool:
    for field, wanted in only.items():
        values = (
            wanted if isinstance(wanted, Sequence) and not isinstance(wanted, str) else [wanted]
        )
        if row.get(field) not in list(values):
            return False
    return True


def _own_paragraphs(rows: Iterable[Row]) -> Iterator[Document]:
    # The same paragraph comes with many questions, so repeats are expected and go uncounted.
    seen: set[str] = set()
    for row in rows:
        for paragraph in row.get("paragraphs") or ():
            title, text = paragraph.get("title") or "", paragraph["text"]
            if (own_id := content_id(title, text)) not in seen:
                seen.add(own_id)
                yield Document(own_id, text, title)


def _gold_passages(row: Row) -> list[tuple[str, str | None]]:
    quoted = [
        (paragraph.get("title") or "", paragraph["text"])
        for paragraph in row.get("paragraphs") or ()
        if paragraph.get("is_supporting")
    ]
    titles = dict.fromkeys(fact[0] for fact in row.get("supporting_facts") or () if fact[0])
    return quoted or [(title, None) for title in titles]


def _triplets(row: Row, field: str) -> Iterator[tuple[str, str, str]]:
    for value in row.get(field) or ():
        fields = three_texts(value)
        if fields is None:
            logger.warning("%s: %s %r left out; expected three texts", row["id"], field, value)
        else:
            yield fields


def three_texts(value: object) -> tuple[str, str, str] | None:
    """Three non-blank texts, cleaned; None for anything else."""
    if not isinstance(value, Sequence) or isinstance(value, str) or len(value) != 3:
        return None
    if not all(isinstance(field, str) and field.strip() for field in value):
        return None
    subject, predicate, object_ = (clean(field).strip() for field in value)
    return subject, predicate, object_


def _steps(row: Row, gold: GoldIndex | None) -> Iterator[Step]:
    paragraphs = row.get("paragraphs") or ()
    for step in row.get("decomposition") or ():
        document_id = None
        place, title = step.get("support_idx"), step.get("support_title")
        if gold is not None and isinstance(place, int) and 0 <= place < len(paragraphs):
            quoted = paragraphs[place]
            document_id = gold.find(quoted.get("title") or "", quoted["text"])
        elif gold is not None and title:
            document_id = gold.find(title)
        yield Step(
            _text(step.get("question") or step.get("statement")),
            _text(step.get("answer")),
            document_id,
        )


def _text(value: object) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
