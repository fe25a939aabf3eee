"""All scores of one answered run: answers, retrieval and cost, with their intervals."""

from collections.abc import Mapping, Sequence
from typing import Any

from triax.records.questions import Question
from triax.records.trace_json import usage_from_json
from triax.records.usage import Usage
from triax.scoring.answers import score_answers
from triax.scoring.cost import score_cost, weighted_tokens
from triax.scoring.lenient import best_lenient
from triax.scoring.retrieval import rank_documents, score_retrieval
from triax.scoring.significance import mean_interval


def score_run(
    answers: Sequence[Mapping[str, Any]],
    questions: Sequence[Question],
    document_of: Mapping[str, str],
    *,
    allow_unmatched: bool = False,
    cutoffs: Sequence[int] = (2, 5),
    index_cost: Usage | None = None,
) -> tuple[dict[str, float], list[dict[str, Any]]]:
    """Scores the rows of `answers.jsonl`; every score of answers has its 95% interval beside it.

    Args:
        answers: one row a question.
        questions: the questions with their gold.
        document_of: the document of each chunk that was retrieved.
        allow_unmatched: as in `score_retrieval`.
        cutoffs: the k of recall and of all.
        index_cost: of the calls that read the corpus, where it is known: `cost/index_*`.

    Returns:
        Summary, and one row a question with all its scores. Retrieval is not scored where no
        question has a chunk, as in a closed book. Where a router chose, its share of the graph is
        `routing/graph_ratio`.

    Raises:
        ValueError: a question has two rows, or none, or as in `score_retrieval`.
    """
    by_id = {row["question_id"]: row for row in answers}
    if len(by_id) != len(answers):
        raise ValueError(
            f"{len(answers)} answers to {len(by_id)} questions; expected one row a question"
        )
    summary, answer_rows = score_answers({i: row["answer"] for i, row in by_id.items()}, questions)
    for row in answer_rows:
        row["lenient"] = best_lenient(row["prediction"] or "", row["answers"])
    if answer_rows:
        summary["answer/lenient"] = sum(row["lenient"] for row in answer_rows) / len(answer_rows)
    merged: dict[str, dict[str, Any]] = {i: {"question_id": i} for i in by_id}
    _merge(merged, answer_rows)
    if any(row["chunk_ids"] for row in answers):
        rankings = {i: rank_documents(row["chunk_ids"], document_of) for i, row in by_id.items()}
        found, rows = score_retrieval(rankings, questions, cutoffs, allow_unmatched)
        summary |= found
        _merge(merged, rows)
    cost, rows = score_cost(
        {i: usage_from_json(row["usage"]) for i, row in by_id.items()},
        {i: row["seconds"] for i, row in by_id.items()},
    )
    summary |= cost
    if index_cost is not None:
        summary["cost/index_calls"] = float(index_cost.calls)
        summary["cost/index_tokens"] = weighted_tokens(index_cost)
    _merge(merged, rows)
    summary["rounds"] = sum(row["num_rounds"] for row in answers) / max(1, len(answers))
    summary["errors"] = float(sum(row["error"] is not None for row in answers))
    routes = [row["route"] for row in answers if row.get("route")]
    if routes:
        summary["routing/graph_ratio"] = routes.count("graph") / len(routes)
    kinds = {question.id: question.kind for question in questions}
    for question_id, row in merged.items():
        row["kind"] = kinds[question_id]
        row["num_rounds"] = by_id[question_id]["num_rounds"]
        if route := by_id[question_id].get("route"):
            row["route"] = route
    summary |= _intervals(summary, list(merged.values()))
    return summary, list(merged.values())


def _merge(merged: dict[str, dict[str, Any]], rows: Sequence[Mapping[str, Any]]) -> None:
    for row in rows:
        merged[row["question_id"]] |= row


def _intervals(summary: Mapping[str, float], rows: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    found: dict[str, float] = {}
    for key in summary:
        name = key.partition("/")[2]
        values = [row[name] for row in rows if isinstance(row.get(name), float)]
        if key.startswith(("answer/", "retrieval/")) and values:
            interval = mean_interval(values)
            found[f"{key}/low"], found[f"{key}/high"] = interval.low, interval.high
    return found
