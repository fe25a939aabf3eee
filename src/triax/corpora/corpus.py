"""A named corpus: its documents, its questions, and one rule for what is wrong with either."""

import hashlib
import json
import logging
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from triax.records.documents import Document
from triax.records.questions import Question, Step
from triax.records.text import clean

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Corpus:
    """What is searched and what is asked.

    `fingerprint` is the sha256 of the documents, whatever their order. The questions are not in
    it, so that an index made for ten questions serves a thousand.
    """

    name: str
    documents: Sequence[Document]
    questions: Sequence[Question]
    fingerprint: str


def build_corpus(name: str, documents: Iterable[Document], questions: Iterable[Question]) -> Corpus:
    """Cleans documents and questions and ties them together; every reader ends here.

    Documents follow the rule of `tidy_documents`. A question without text is dropped; one that
    repeats id and text is dropped; one that repeats the id of another question becomes `<id>~2`.
    Gold ids that no document has move to `unmatched_gold` (R19). All of it is counted in one
    warning (R8).
    """
    kept, merged, counts = _tidy(documents)
    asked: dict[str, Question] = {}
    for question in questions:
        question = _clean_question(question, kept, merged)
        if not question.text.strip():
            counts["questions without text, dropped"] += 1
        elif question.id in asked and asked[question.id].text == question.text:
            counts["repeated questions, dropped"] += 1
        else:
            if question.id in asked:
                counts["questions that share an id, renamed <id>~2"] += 1
                question = replace(question, id=_free(question.id, asked))
            asked[question.id] = question
    counts["gold documents that the corpus lacks"] += sum(
        len(question.unmatched_gold) for question in asked.values()
    )
    _warn(name, counts)
    records = tuple(kept.values())
    return Corpus(name, records, tuple(asked.values()), fingerprint(records))


def tidy_documents(documents: Iterable[Document]) -> tuple[Document, ...]:
    """Cleans documents and drops what cannot or need not be searched.

    A document without text is dropped. One with title and text of an earlier one is dropped, and
    its id stands for the earlier one. One with the id of an earlier document but other content
    becomes `<id>~2`, so that no text is lost.

    Raises:
        ValueError: a document has no id.
    """
    kept, _, counts = _tidy(documents)
    _warn("documents", counts)
    return tuple(kept.values())


def fingerprint(documents: Iterable[Document]) -> str:
    """The sha256 of ids, titles and texts, in the order of the ids."""
    digest = hashlib.sha256()
    for document in sorted(documents, key=lambda document: document.id):
        digest.update(json.dumps([document.id, document.title, document.text]).encode("ascii"))
    return digest.hexdigest()


def content_id(title: str, text: str) -> str:
    """An id for a passage that comes without one: the same passage has the same id everywhere."""
    return hashlib.sha256(f"{clean(title)}\n{clean(text)}".encode()).hexdigest()[:16]


def unique_texts(values: Iterable[object]) -> tuple[str, ...]:
    """Cleaned texts without blanks and repeats, in order; None and other types are skipped."""
    texts = (clean(value).strip() for value in values if isinstance(value, str))
    return tuple(dict.fromkeys(text for text in texts if text))


def _tidy(
    documents: Iterable[Document],
) -> tuple[dict[str, Document], dict[str, str], Counter[str]]:
    """Documents by id, the ids of dropped repeats with the id that is kept, and the counts."""
    kept: dict[str, Document] = {}
    merged: dict[str, str] = {}
    by_content: dict[tuple[str, str], str] = {}
    counts: Counter[str] = Counter()
    for document in documents:
        document = Document(
            clean(document.id),
            clean(document.text),
            clean(document.title),
            _clean_values(document.metadata),
        )
        if not document.id:
            raise ValueError(
                f"a document has an empty id (title {document.title!r}); give every document an id"
            )
        content = (document.title, document.text)
        if not document.text.strip():
            counts["documents without text, dropped"] += 1
        elif content in by_content:
            counts["repeated documents, dropped"] += 1
            merged.setdefault(document.id, by_content[content])
        else:
            if document.id in kept:
                counts["documents that share an id, renamed <id>~2"] += 1
                document = replace(document, id=_free(document.id, kept))
            kept[document.id] = document
            by_content[content] = document.id
    return kept, merged, counts


def _clean_values(value: Any) -> Any:
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, Mapping):
        return {key: _clean_values(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_clean_values(one) for one in value]
    return value


def _free(taken: str, ids: Mapping[str, object]) -> str:
    number = 2
    while f"{taken}~{number}" in ids:
        number += 1
    return f"{taken}~{number}"


def _clean_question(
    question: Question, kept: Mapping[str, Document], merged: Mapping[str, str]
) -> Question:
    found: list[str] = []
    lost = list(question.unmatched_gold)
    for gold in map(clean, question.gold_document_ids):
        where = gold if gold in kept else merged.get(gold)
        found.append(where) if where is not None else lost.append(gold)
    steps = []
    for step in question.steps:
        gold = clean(step.document_id) if step.document_id is not None else None
        where = gold if gold in kept else merged.get(gold or "")
        steps.append(Step(clean(step.question), clean(step.answer), where))
    return replace(
        question,
        id=clean(question.id),
        text=clean(question.text).strip(),
        answers=unique_texts(question.answers),
        gold_document_ids=tuple(dict.fromkeys(found)),
        unmatched_gold=tuple(dict.fromkeys(map(clean, lost))),
        steps=tuple(steps),
    )


def _warn(name: str, counts: Counter[str]) -> None:
    if found := "; ".join(f"{number} {what}" for what, number in counts.items() if number):
        logger.warning("%s: %s", name, found)
