"""What the answers cost: calls, tokens and seconds, in sum and for a question."""

from collections.abc import Mapping
from typing import Any

from triax.records.usage import Usage

OUTPUT_WEIGHT = 4.0


def weighted_tokens(usage: Usage, output_weight: float = OUTPUT_WEIGHT) -> float:
    """Input tokens plus four times output tokens, T2RAG's measure of cost (its experiments).

    >>> weighted_tokens(Usage(prompt_tokens=100, completion_tokens=10))
    140.0
    """
    return usage.prompt_tokens + output_weight * usage.completion_tokens


def score_cost(
    usages: Mapping[str, Usage],
    seconds: Mapping[str, float] | None = None,
    output_weight: float = OUTPUT_WEIGHT,
) -> tuple[dict[str, float], list[dict[str, Any]]]:
    """Sums (`cost/total_*`) and means for a question (`cost/*`), and one row for each question.

    Args:
        usages: by question id.
        seconds: wall time by question id, where it was taken.
        output_weight: how much dearer an output token is than an input token.

    Returns:
        Summary and rows; means are absent where there is no question, and `cost/seconds` where no
        wall time is given.

    Raises:
        ValueError: wall time is given for some of the questions only.
    """
    if seconds is not None and set(seconds) != set(usages):
        differing = sorted(set(seconds) ^ set(usages))
        raise ValueError(
            f"{len(differing)} questions have only one of usage and wall time, e.g. "
            f"{differing[:3]}; give both for each, or no wall time"
        )
    rows: list[dict[str, Any]] = []
    for question_id, usage in usages.items():
        row = {
            "question_id": question_id,
            "calls": usage.calls,
            "cached_calls": usage.cached_calls,
            "prompt_tokens": usage.prompt_tokens,
            "completion_tokens": usage.completion_tokens,
            "weighted_tokens": weighted_tokens(usage, output_weight),
            "llm_seconds": usage.llm_seconds,
        }
        if seconds is not None:
            row["seconds"] = seconds[question_id]
        rows.append(row)
    summary = {"cost/questions": float(len(rows))}
    for name in list(rows[0])[1:] if rows else ():
        total = float(sum(row[name] for row in rows))
        summary[f"cost/total_{name}"] = total
        summary[f"cost/{name}"] = total / len(rows)
    return summary, rows
