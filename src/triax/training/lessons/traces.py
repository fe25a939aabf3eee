"""Lessons from the traces of a large model: what it did where its answer was right.

A run of `eval/answer.py` that `eval/score.py` has scored holds a question's query triplets, the
state before and after each round, and the answer. Where the answer agrees with gold, the smaller
model is taught to write the same (distillation by rejection sampling, as in STaR, Zelikman et al.
2022, section 3). Which dev questions are right must not be learnt, so runs on them are refused.
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from triax.records.files import read_jsonl
from triax.records.lesson_prompts import (
    NOT_FOUND,
    answer_prompt,
    cut_words,
    decompose_prompt,
    read_prompt,
    resolve_prompt,
)
from triax.records.query_triplets import QueryTriplet
from triax.training.lessons.texts import (
    NUM_PASSAGES,
    READ_WORDS,
    RESOLVE_WORDS,
    Lesson,
    canonical_names,
    written,
)

Row = Mapping[str, Any]
MAX_FACTS = 8


class TracesError(ValueError):
    """A run cannot be learnt from; the message says why."""


def read_traces(
    folder: Path, passages: Mapping[str, str] | None = None, min_f1: float = 0.8
) -> list[Lesson]:
    """Lessons for decompose, resolve and answer from one run.

    Args:
        folder: of a run, with config.json, traces.jsonl and per_question.jsonl.
        passages: of the corpus by chunk id, title on the first line. A resolve lesson shows the
            found passages where it has them, else the found propositions; without passages no
            lesson comes from a pipeline that only reads.
        min_f1: the least token F1 of an answer that is learnt from.

    Raises:
        FileNotFoundError: the run is not there, or not scored.
        TracesError: the run was not made on the train split.
    """
    for name in ("config.json", "traces.jsonl", "per_question.jsonl"):
        if not (folder / name).is_file():
            raise FileNotFoundError(
                f"{folder} has no {name}; lessons need a run of eval/answer.py corpus.split=train "
                "that eval/score.py has scored"
            )
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    split = (config.get("corpus") or {}).get("split")
    if split != "train":
        raise TracesError(
            f"{folder} was made on the split {split!r}; learn from runs with corpus.split=train, "
            "since figures on questions that were learnt say nothing"
        )
    scores = {row["question_id"]: row for row in read_jsonl(folder / "per_question.jsonl")}
    found: dict[str, Lesson] = {}
    for trace in read_jsonl(folder / "traces.jsonl"):
        score = scores.get(trace["question_id"], {})
        f1 = next((score[key] for key in ("answer/f1", "f1") if key in score), 0.0)
        if f1 >= min_f1 and not trace["error"] and trace["answer"]:
            # A question that was asked again has two traces; the later one holds.
            for lesson in _lessons(trace, score, passages or {}, folder.name):
                found[lesson.id] = lesson
    return list(found.values())


def read_passages(path: str | None) -> dict[str, str]:
    """The passages of a corpus file by id; none without a file.

    A document that was cut into several chunks has no passage under its chunks' ids.
    """
    rows = read_jsonl(Path(path).expanduser()) if path else ()
    return {
        row["id"]: f"{row['title']}\n{row['text']}" if row.get("title") else row["text"]
        for row in rows
    }


def _lessons(trace: Row, score: Row, passages: Mapping[str, str], source: str) -> Iterator[Lesson]:
    id_, question = trace["question_id"], trace["question"]
    # The gold form where it is known: a model's may have more words around it.
    answers = score.get("answers") or [trace["answer"]]
    if trace["decomposition"]:
        target = written(canonical_names(trace["decomposition"]))
        yield Lesson("decompose", decompose_prompt(question), target, source, f"{id_}/decompose")
    for one in trace["rounds"]:
        yield from _round(one, id_, passages, source)
    final = trace["final"]
    if final and final["resolved"]:
        facts = [written([part["triplet"]]) for part in final["resolved"]]
        facts += [written([fields]) for fields in final["searchable"]]
        prompt = answer_prompt(question, facts)
        yield Lesson("answer", prompt, answers[0], source, f"{id_}/answer")
    elif texts := _shown(trace["chunk_ids"], passages, READ_WORDS):
        prompt = read_prompt(question, texts)
        yield Lesson("answer", prompt, answers[0], source, f"{id_}/answer")


def _round(
    one: Row, question_id: str, passages: Mapping[str, str], source: str
) -> Iterator[Lesson]:
    """One lesson a searchable triplet of the round: its value, or that it is not there."""
    texts = _shown([found["id"] for found in one["chunks"]], passages, RESOLVE_WORDS)
    facts = [] if texts else [found["text"] for found in one["propositions"][:MAX_FACTS]]
    if not texts and not facts:
        return
    resolved = [part["triplet"] for part in one["after"]["resolved"]]
    for number, fields in enumerate(one["before"]["searchable"]):
        query = QueryTriplet.parse(*fields)
        value = _value(query, resolved)
        if value is None and fields not in one["after"]["searchable"]:
            continue  # it was filled in another wording: nothing sure can be learnt
        yield Lesson(
            "resolve",
            resolve_prompt(query, texts, facts),
            NOT_FOUND if value is None else value,
            source,
            f"{question_id}/{one['number']}/{number}",
        )


def _value(query: QueryTriplet, resolved: list[list[str]]) -> str | None:
    """What stands in a resolved triplet where the query has its one placeholder."""
    gap = next(n for n, term in enumerate(query.terms) if term.placeholders)
    if query.terms[gap].known:
        return None
    for fields in resolved:
        if all(str(term) == fields[n] for n, term in enumerate(query.terms) if n != gap):
            return fields[gap]
    return None


def _shown(chunk_ids: list[str], passages: Mapping[str, str], max_words: int) -> list[str]:
    found = [passages[id_] for id_ in chunk_ids if id_ in passages][:NUM_PASSAGES]
    return [cut_words(text, max_words) for text in found]
