"""Many questions through a pipeline, in batches, resumable after a kill at any point (R4)."""

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from triax.records.files import atomic_write, write_jsonl
from triax.records.questions import Question
from triax.records.trace_json import trace_to_json
from triax.records.verbs import Pipeline
from triax.runs.items import ItemLog


async def answer_all(
    questions: Sequence[Question],
    pipeline: Pipeline,
    folder: Path | str,
    *,
    batch_size: int = 32,
    progress: Callable[[int], None] | None = None,
) -> list[dict[str, Any]]:
    """Answers what is not answered yet and writes `traces.jsonl`, `answers.jsonl`, `run.trec`.

    Traces are appended batch by batch; a question whose trace has an error is tried again by the
    next call. The two other files are made from the traces at the end, in order of the questions.

    Args:
        questions: all questions of the run.
        pipeline: what answers them.
        folder: a claimed run folder.
        batch_size: how many questions advance together.
        progress: is called with the number of questions done.

    Returns:
        The rows of `answers.jsonl`.
    """
    folder = Path(folder)
    log = ItemLog(folder / "traces.jsonl", key="question_id")
    known = log.rows()
    left = [
        question
        for question in questions
        if question.id not in known or known[question.id]["error"] is not None
    ]
    done = len(questions) - len(left)
    for start in range(0, len(left), batch_size):
        if progress:
            progress(done + start)
        traces = await pipeline.answer(left[start : start + batch_size])
        log.append(trace_to_json(trace) for trace in traces)
    if progress:
        progress(len(questions))
    known = log.rows()
    answers = [_answer(known[question.id]) for question in questions]
    write_jsonl(folder / "answers.jsonl", answers)
    with atomic_write(folder / "run.trec") as stream:
        for row in answers:
            for rank, chunk_id in enumerate(row["chunk_ids"], 1):
                # Ranks decide: a score that falls by one keeps every reader of TREC runs in order.
                score = len(row["chunk_ids"]) - rank + 1
                fields = (row["question_id"], "Q0", chunk_id, rank, score, pipeline.name)
                stream.write(" ".join(_trec_field(field) for field in fields) + "\n")
    return answers


def _trec_field(value: object) -> str:
    """Blanks separate the fields of a TREC run, so one inside an id is percent-encoded."""
    return re.sub(r"\s", lambda blank: quote(blank[0]), str(value))


def _answer(trace: dict[str, Any]) -> dict[str, Any]:
    kept = ("question_id", "question", "pipeline", "answer", "stop_reason", "error")
    routing = trace.get("routing")
    return {
        **{name: trace[name] for name in kept},
        **({"route": routing["route"]} if routing else {}),
        "num_rounds": len(trace["rounds"]),
        "chunk_ids": trace["chunk_ids"],
        "usage": trace["usage"],
        "seconds": trace["seconds"],
    }
