"""Recall and rank measures of retrieved documents, computed by ir-measures."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import ir_measures
from ir_measures import RR, R, nDCG

from triax.records.questions import Question
from triax.scoring.answers import require_same_ids


def rank_documents(chunk_ids: Iterable[str], document_of: Mapping[str, str]) -> list[str]:
    """The documents of ranked chunks, each at the rank of its first chunk.

    Raises:
        KeyError: a chunk is not in the map.
    """
    ranked: dict[str, None] = {}
    for chunk_id in chunk_ids:
        if chunk_id not in document_of:
            raise KeyError(
                f"chunk {chunk_id!r} is in no document; the map of {len(document_of)} chunks must "
                "be that of the searched index"
            )
        ranked.setdefault(document_of[chunk_id])
    return list(ranked)


def score_retrieval(
    rankings: Mapping[str, Sequence[str]],
    questions: Iterable[Question],
    cutoffs: Sequence[int] = (2, 5, 10),
    allow_unmatched: bool = False,
) -> tuple[dict[str, float], list[dict[str, Any]]]:
    """Means over the questions that have gold documents, and one row for each of them.

    `recall@k` is the share of the gold documents among the first k, `all@k` says whether they are
    all there, `mrr` is 1 / rank of the first gold document in the whole ranking, `ndcg@k` has gains
    of 1. Questions without gold are left out and counted in `retrieval/no_gold`.

    Args:
        rankings: document ids, best first, by question id; a repeated id counts where it stands
            first, and an empty ranking scores 0.
        questions: all questions that were asked.
        cutoffs: the values of k, each at least 1.
        allow_unmatched: counts gold documents that the corpus lacks as misses.

    Returns:
        Summary with the means (absent if nothing was scored) and the counts `retrieval/scored`,
        `retrieval/no_gold`, `retrieval/unmatched_gold`; and the rows.

    Raises:
        ValueError: a question has gold that the corpus lacks and this is not allowed (R19); or
            rankings and questions have different ids; or a cutoff is below 1.
    """
    questions = list(questions)
    require_same_ids("ranking", rankings, questions)
    if any(cutoff < 1 for cutoff in cutoffs):
        raise ValueError(f"cutoffs {list(cutoffs)}; expected whole numbers from 1")
    unmatched = {one.id: one.unmatched_gold for one in questions if one.unmatched_gold}
    lost = sum(map(len, unmatched.values()))
    if lost and not allow_unmatched:
        first = dict(list(unmatched.items())[:5])
        raise ValueError(
            f"{lost} gold documents of {len(unmatched)} questions are not in the corpus, e.g. "
            f"{first}; correct the corpus, leave these questions out, or count them as misses with "
            "allow_unmatched=True"
        )
    judged = [one for one in questions if one.gold_document_ids or one.unmatched_gold]
    values = _measure(rankings, judged, cutoffs)
    rows = [
        {
            "question_id": one.id,
            "gold": list(one.gold_document_ids),
            "unmatched_gold": list(one.unmatched_gold),
            **measured,
        }
        for one, measured in zip(judged, values, strict=True)
    ]
    summary = {
        "retrieval/scored": float(len(rows)),
        "retrieval/no_gold": float(len(questions) - len(rows)),
        "retrieval/unmatched_gold": float(lost),
    }
    for name in values[0] if values else ():
        summary[f"retrieval/{name}"] = sum(measured[name] for measured in values) / len(values)
    return summary, rows


def _measure(
    rankings: Mapping[str, Sequence[str]], questions: Sequence[Question], cutoffs: Sequence[int]
) -> list[dict[str, float]]:
    """`recall@k`, `all@k`, `mrr` and `ndcg@k` of each question."""
    measures = {"mrr": RR}
    for cutoff in cutoffs:
        measures[f"recall@{cutoff}"] = R @ cutoff
        measures[f"ndcg@{cutoff}"] = nDCG @ cutoff
    qrels: dict[str, dict[str, int]] = {}
    run: dict[str, dict[str, float]] = {}
    for number, question in enumerate(questions):
        # trec_eval reads C strings, so ids of any alphabet are replaced by numbers. Gold that the
        # corpus lacks gets numbers that no ranked document has.
        ranked = list(dict.fromkeys(rankings[question.id]))
        names = {one: f"d{place}" for place, one in enumerate(ranked)}
        gold = [names.get(one, f"g{place}") for place, one in enumerate(question.gold_document_ids)]
        gold += [f"u{place}" for place in range(len(question.unmatched_gold))]
        qrels[f"q{number}"] = dict.fromkeys(gold, 1)
        run[f"q{number}"] = {
            names[one]: float(len(ranked) - place) for place, one in enumerate(ranked)
        }
    values: list[dict[str, float]] = [dict.fromkeys(measures, 0.0) for _ in questions]
    names_of = {measure: name for name, measure in measures.items()}
    if questions:
        for found in ir_measures.iter_calc(list(measures.values()), qrels, run):
            values[int(found.query_id[1:])][names_of[found.measure]] = float(found.value)
    for measured in values:
        for cutoff in cutoffs:
            measured[f"all@{cutoff}"] = float(measured[f"recall@{cutoff}"] == 1.0)
    return values
