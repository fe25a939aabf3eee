"""Where the answers of a run go wrong: what was read did not cover it, or reasoning failed on it.

Source: "The Reasoning Bottleneck in Graph-RAG" (Zarinkia, Srinivasan, Thomo, 2026, section 5): a
wrong answer whose context covers what is needed is an error of reasoning, else one of retrieval.
Resolved and unresolved questions apart: T2RAG (Gong et al., 2026, figure 3).
"""

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from triax.records.documents import Chunk, Document
from triax.records.questions import Question
from triax.scoring.answers import require_same_ids
from triax.scoring.coverage import coverage
from triax.scoring.error_classes import CLASSES, bound_values, error_class, is_resolved
from triax.scoring.significance import Interval, mean_interval

Row = dict[str, Any]


def error_rows(
    traces: Mapping[str, Mapping[str, Any]],
    questions: Sequence[Question],
    chunks: Mapping[str, Chunk],
    documents: Mapping[str, Document],
    measure: Callable[[str, Sequence[str]], float],
) -> list[Row]:
    """One row for each question that has a gold answer, in order.

    What was read is the passages of the trace's chunks and its `context`. Where no question of the
    run has either, as in a closed book, coverage is not measured.

    Args:
        traces: as `trace_to_json` gives them, by question id.
        questions: all questions that were asked.
        chunks: those of the corpus, by id.
        documents: those of the corpus, by id.
        measure: 1.0 for an answer that is right, given that and the gold answers.

    Returns:
        Rows of `question_id`, `kind`, `right`, `abstained` (no answer, and no error), what
        `coverage` says, `state` (resolved, unresolved, or None), `hallucinated` (whether a round
        bound a value that stands in nothing that was read; None without a state) and `class` (None
        for a right answer; see `error_class`).

    Raises:
        ValueError: a question has no trace, or the other way round.
        KeyError: a chunk of a trace is not there.
    """
    require_same_ids("trace", traces, questions)
    has_context = any(one["chunk_ids"] or one.get("context") for one in traces.values())
    rows = []
    for question in questions:
        if not question.answers:
            continue
        trace = traces[question.id]
        answer = (trace["answer"] or "").strip()
        right = bool(answer) and measure(answer, question.answers) == 1.0
        found = [chunks[one] for one in trace["chunk_ids"]]
        texts = [*(one.passage for one in found), *trace.get("context", ())]
        covered = coverage(question, texts, {one.document_id for one in found}, documents)
        resolved = is_resolved(trace)
        bound = [] if resolved is None else bound_values(question, trace, chunks)
        rows.append(
            {
                "question_id": question.id,
                "kind": question.kind,
                "right": right,
                "abstained": not answer and trace["error"] is None,
                **(covered if has_context else dict.fromkeys(covered)),
                "state": {True: "resolved", False: "unresolved", None: None}[resolved],
                "hallucinated": None
                if resolved is None
                else not all(one.is_grounded for one in bound),
                "class": None if right else error_class(question, trace, chunks, documents),
            }
        )
    return rows


def decompose_errors(rows: Sequence[Row]) -> dict[str, dict[str, float]]:
    """What `summarise` says of all rows and of their parts.

    The parts are `kind/<kind>`, `state/resolved` and `state/unresolved`, and by what M1 was told
    from, since an answer in a text and documents that were found are not the same:
    `m1_by/answer` and `m1_by/documents`. A part that is empty, or the whole, is left out.
    """
    parts = {"all": list(rows)}
    for name in ("kind", "state", "m1_by"):
        values = sorted({row[name] for row in rows if row[name]})
        for value in values:
            part = [row for row in rows if row[name] == value]
            if len(part) < len(rows):
                parts[f"{name}/{value}"] = part
    return {name: summarise(part) for name, part in parts.items()}


def summarise(rows: Sequence[Row]) -> dict[str, float]:
    """Coverage, accuracy where covered, and the share of errors that are of reasoning.

    Args:
        rows: of `error_rows`.

    Returns:
        `count/questions`, `count/wrong`, and shares in [0, 1], each with its 95% bootstrap interval
        at `<name>/low` and `/high`; one of nothing is absent. Of all questions: `errors/accuracy`,
        `errors/abstained`; of those where it is known: `errors/m1`, `errors/m3`,
        `errors/answer_in_context`, `errors/hallucinated`; of those that M1 or M3 covers:
        `errors/m1_accuracy`, `errors/m3_accuracy`; of the wrong answers: `errors/m1_reasoning`,
        `errors/m3_reasoning` (covered), and `errors/class/<class>`.
    """
    wrong = [row for row in rows if not row["right"]]
    found: dict[str, float] = {
        "count/questions": float(len(rows)),
        "count/wrong": float(len(wrong)),
    }
    shares = {
        "accuracy": [row["right"] for row in rows],
        "abstained": [row["abstained"] for row in rows],
        "hallucinated": [row["hallucinated"] for row in rows],
        "answer_in_context": [row["answer_in_context"] for row in rows],
    }
    for name in ("m1", "m3"):
        shares[name] = [row[name] for row in rows]
        shares[f"{name}_accuracy"] = [row["right"] for row in rows if row[name]]
        shares[f"{name}_reasoning"] = [row[name] for row in wrong]
    for name in CLASSES:
        shares[f"class/{name}"] = [row["class"] and row["class"] == name for row in wrong]
    for name, values in shares.items():
        known = [value for value in values if value is not None]
        if known:
            interval = _interval(sum(known), len(known))
            key = f"errors/{name}"
            found |= {key: interval.mean, f"{key}/low": interval.low, f"{key}/high": interval.high}
    return found


@lru_cache(maxsize=1024)
def _interval(count: int, total: int) -> Interval:
    """Of a share; it depends on the two numbers alone, not on the order of the questions."""
    return mean_interval([1.0] * count + [0.0] * (total - count))
