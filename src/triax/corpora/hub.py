"""Data sets of the Hugging Face hub, by name."""

import json
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from triax.corpora.corpus import Corpus, build_corpus, content_id, tidy_documents, unique_texts
from triax.corpora.jsonl import three_texts
from triax.records.documents import Document
from triax.records.query_triplets import QueryTriplet
from triax.records.questions import Question, Step
from triax.records.triplets import Triplet

logger = logging.getLogger(__name__)

Row = Mapping[str, Any]
Adapter = Callable[[Row], tuple[Question, tuple[Document, ...]]]


@dataclass(frozen=True, slots=True)
class Source:
    """Where a data set is on the hub and how its rows are read.

    `corpus_file` is a JSON file of that repository that holds the documents, for data sets whose
    rows bring none.
    """

    repository: str
    config: str | None
    split: str
    adapter: Adapter
    corpus_file: str | None = None


def load_hub(
    source: str,
    split: str | None = None,
    revision: str | None = None,
    limit: int | None = None,
    repository: str | None = None,
    name: str | None = None,
) -> Corpus:
    """Loads a data set with the `datasets` library and turns its rows into a corpus.

    The paragraphs of all rows of the split are pooled, so the corpus does not depend on `limit`.

    Args:
        source: a name of `SOURCES`.
        split: default is the data set's usual evaluation split.
        revision: a commit, tag or branch of the repository; a commit makes a run repeatable.
        limit: keeps the first questions.
        repository: another repository with the same fields.
        name: default is the source.

    Raises:
        ValueError: no such source; the message lists those there are.
        ConnectionError: the hub did not give the data; the message names ways without it.
    """
    if source not in SOURCES:
        raise ValueError(f"no source {source!r}; there are {sorted(SOURCES)}")
    chosen = SOURCES[source]
    repository = repository or chosen.repository
    try:
        rows = _fetch_rows(repository, chosen.config, split or chosen.split, revision)
        texts = _fetch_texts(repository, chosen.corpus_file, revision)
    except Exception as error:
        raise ConnectionError(
            f"the hub did not give {repository} (split {split or chosen.split!r}, revision "
            f"{revision!r}): {type(error).__name__}: {error}. Check split, revision and network; "
            "without a network use corpus=jsonl, corpus=beir, corpus=flashrag or corpus=folder on "
            "local files, or corpus=demo, which comes with the package"
        ) from error
    questions: list[Question] = []
    documents: dict[str, Document] = {document.id: document for document in texts}
    for row in rows:
        question, paragraphs = chosen.adapter(row)
        questions.append(question)
        # The same paragraph comes with many questions; its id is made of its content.
        documents.update((paragraph.id, paragraph) for paragraph in paragraphs)
    pooled = tidy_documents(documents.values())
    return build_corpus(name or source, pooled, islice(questions, limit))


def read_hotpotqa(row: Row) -> tuple[Question, tuple[Document, ...]]:
    """A row of hotpotqa/hotpot_qa: 10 paragraphs, their sentences joined as they are.

    In the fullwiki setting the paragraphs are retrieved, so that a gold one may be missing; its
    title is then in `unmatched_gold`.
    """
    return _with_context(row, join="")


def read_2wikimultihopqa(row: Row) -> tuple[Question, tuple[Document, ...]]:
    """A row of framolfese/2WikiMultihopQA: HotpotQA's fields and gold triplets.

    Sentences carry no blanks at their ends and are joined by one.
    """
    return _with_context(row, join=" ")


def read_musique(row: Row) -> tuple[Question, tuple[Document, ...]]:
    """A row of dgslibisey/MuSiQue: 20 paragraphs and gold sub-questions.

    Where every sub-question has the form `subject >> relation`, the steps are query triplets too.
    """
    documents = {
        paragraph["idx"]: _paragraph(paragraph["title"], paragraph["paragraph_text"])
        for paragraph in row["paragraphs"]
    }
    gold = [documents[one["idx"]].id for one in row["paragraphs"] if one["is_supporting"]]
    steps = []
    for step in row.get("question_decomposition") or ():
        support = documents.get(step.get("paragraph_support_idx"))
        steps.append(Step(step["question"], step["answer"], support.id if support else None))
    question = Question(
        row["id"],
        row["question"],
        answers=unique_texts([row.get("answer"), *(row.get("answer_aliases") or ())]),
        kind=row["id"].split("__")[0],
        gold_document_ids=tuple(dict.fromkeys(gold)),
        gold_query_triplets=tuple(_relations([step.question for step in steps])),
        steps=tuple(steps),
    )
    return question, tuple(documents.values())


def read_popqa(row: Row) -> tuple[Question, tuple[Document, ...]]:
    """A row of akariasai/PopQA: a gold triplet, no passages. The object is the first answer."""
    possible = row["possible_answers"]
    possible = json.loads(possible) if isinstance(possible, str) else possible
    fields = three_texts([row["subj"], row["prop"], row["obj"]])
    query = QueryTriplet.parse(row["subj"], row["prop"], "?1")
    question = Question(
        str(row["id"]),
        row["question"],
        answers=unique_texts([row["obj"], *possible]),
        kind=row["prop"],
        gold_triplets=(Triplet(*fields),) if fields else (),
        gold_query_triplets=(query,) if fields else (),
    )
    return question, ()


def read_graphrag_bench(row: Row) -> tuple[Question, tuple[Document, ...]]:
    """A row of GraphRAG-Bench/GraphRAG-Bench; the gold document is the whole source text."""
    source = row.get("source")
    question = Question(
        str(row["id"]),
        row["question"],
        answers=unique_texts([row.get("answer")]),
        kind=row.get("question_type") or "",
        gold_document_ids=(source,) if source else (),
    )
    return question, ()


SOURCES: Mapping[str, Source] = {
    "hotpotqa": Source("hotpotqa/hotpot_qa", "distractor", "validation", read_hotpotqa),
    "hotpotqa_fullwiki": Source("hotpotqa/hotpot_qa", "fullwiki", "validation", read_hotpotqa),
    "2wikimultihopqa": Source(
        "framolfese/2WikiMultihopQA", None, "validation", read_2wikimultihopqa
    ),
    "musique": Source("dgslibisey/MuSiQue", None, "validation", read_musique),
    "popqa": Source("akariasai/PopQA", None, "test", read_popqa),
    "graphrag_bench_medical": Source(
        "GraphRAG-Bench/GraphRAG-Bench",
        "medical",
        "train",
        read_graphrag_bench,
        "Datasets/Corpus/medical.json",
    ),
    "graphrag_bench_novel": Source(
        "GraphRAG-Bench/GraphRAG-Bench",
        "novel",
        "train",
        read_graphrag_bench,
        "Datasets/Corpus/novel.json",
    ),
}


def _fetch_rows(
    repository: str, config: str | None, split: str, revision: str | None
) -> Iterable[Row]:
    from datasets import load_dataset

    return load_dataset(repository, config, split=split, revision=revision)


def _fetch_texts(repository: str, file: str | None, revision: str | None) -> list[Document]:
    if file is None:
        return []
    from huggingface_hub import hf_hub_download

    path = hf_hub_download(repository, file, repo_type="dataset", revision=revision)
    with open(path, encoding="utf-8") as stream:
        return list(read_graphrag_bench_corpus(json.load(stream)))


def read_graphrag_bench_corpus(value: Row | Sequence[Row]) -> Iterator[Document]:
    """GraphRAG-Bench's texts: one object, or a list of them, with `corpus_name` and `context`."""
    for text in [value] if isinstance(value, Mapping) else value:
        yield Document(text["corpus_name"], text["context"], text["corpus_name"])


def _with_context(row: Row, join: str) -> tuple[Question, tuple[Document, ...]]:
    context = row["context"]
    documents = tuple(
        _paragraph(title, join.join(sentences).strip())
        for title, sentences in zip(context["title"], context["sentences"], strict=True)
    )
    by_title = {document.title: document.id for document in reversed(documents)}
    titles = dict.fromkeys((row.get("supporting_facts") or {}).get("title") or ())
    evidences = (three_texts(value) for value in _evidences(row.get("evidences")))
    question = Question(
        row["id"],
        row["question"],
        answers=unique_texts([row.get("answer")]),
        kind=row.get("type") or "",
        gold_document_ids=tuple(by_title[title] for title in titles if title in by_title),
        unmatched_gold=tuple(title for title in titles if title not in by_title),
        gold_triplets=tuple(Triplet(*fields) for fields in evidences if fields),
    )
    return question, documents


def _evidences(value: Any) -> list[Sequence[Any]]:
    """Rows of (subject, relation, object), whichever of the hub's two forms they come in."""
    if isinstance(value, Mapping):
        return list(zip(value["fact"], value["relation"], value["entity"], strict=True))
    return list(value or ())


def _relations(questions: Sequence[str]) -> Iterator[QueryTriplet]:
    """`#1 >> country` as step 2 becomes `?1 | country | ?2`; nothing unless all have the form."""
    parts = [question.split(" >> ") for question in questions]
    if all(len(part) == 2 for part in parts):
        for number, (subject, relation) in enumerate(parts, 1):
            yield QueryTriplet.parse(subject.replace("#", "?"), relation, f"?{number}")


def _paragraph(title: str, text: str) -> Document:
    return Document(content_id(title, text), text, title)
