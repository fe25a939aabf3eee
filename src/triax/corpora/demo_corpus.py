"""The demo: passages, multi-hop questions and triplets made by hand, shipped with the package."""

from dataclasses import dataclass
from importlib.resources import as_file, files
from typing import Any

from triax.corpora.corpus import Corpus, build_corpus
from triax.records.documents import Document
from triax.records.files import read_jsonl
from triax.records.query_triplets import QueryTriplet
from triax.records.questions import Question
from triax.records.triplets import Extraction, Triplet


@dataclass(frozen=True, slots=True)
class DemoCorpus:
    """Passages, questions about them, and for every passage what a careful reader extracts.

    Every passage is one chunk: `Extraction.chunk_id` is a `Document.id`. The kinds of question
    are those of 2WikiMultiHopQA (Ho et al., 2020, section 2) and HotpotQA's bridge (Yang et al.,
    2018, section 2), twelve of each; questions that two facts decide by yes or no are `yes_no`.
    """

    documents: tuple[Document, ...]
    questions: tuple[Question, ...]
    extractions: tuple[Extraction, ...]


def load_demo(split: str | None = None) -> DemoCorpus:
    """Reads the demo that lies in the package.

    Args:
        split: "dev" has 20 questions to try prompts on, "test" 40 that nothing is tuned on;
            None gives all 60. Documents and extractions are always complete.

    Raises:
        ValueError: another split.
    """
    if split not in ("dev", "test", None):
        raise ValueError(f"split {split!r}; the demo has 'dev' and 'test', and None for both")
    questions = (
        _question(row) for row in _rows("questions.jsonl") if split in (row["split"], None)
    )
    return DemoCorpus(
        tuple(Document(row["id"], row["text"], row["title"]) for row in _rows("passages.jsonl")),
        tuple(questions),
        tuple(_extraction(row) for row in _rows("triplets.jsonl")),
    )


def load_demo_corpus(
    split: str | None = None, limit: int | None = None, name: str = "demo"
) -> Corpus:
    """The demo in the form of every other corpus, without its extractions.

    Args:
        split: as for `load_demo`.
        limit: keeps the first questions; the documents stay all.
        name: the corpus's name.

    Raises:
        ValueError: another split.
    """
    demo = load_demo(split)
    return build_corpus(name, demo.documents, demo.questions[:limit])


def _rows(name: str) -> list[dict[str, Any]]:
    with as_file(files("triax.corpora").joinpath("demo", name)) as path:
        return list(read_jsonl(path))


def _question(row: dict[str, Any]) -> Question:
    return Question(
        id=row["id"],
        text=row["question"],
        answers=tuple(row["answers"]),
        kind=row["kind"],
        gold_document_ids=tuple(row["gold_passages"]),
        gold_triplets=tuple(Triplet(*fields) for fields in row["gold_triplets"]),
        gold_query_triplets=tuple(QueryTriplet.parse(*fields) for fields in row["query_triplets"]),
    )


def _extraction(row: dict[str, Any]) -> Extraction:
    triplets = tuple(Triplet(*fields) for fields in row["triplets"])
    return Extraction(row["passage_id"], triplets, tuple(row["entities"]))
