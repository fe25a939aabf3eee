"""Scores of a measured decomposer: the rows of a run, with intervals and per-question figures."""

from collections.abc import Mapping, Sequence
from typing import Any

from triax.records.query_triplets import QueryTriplet
from triax.scoring.decomposition import decomposition_scores, step_links, structure_scores
from triax.scoring.significance import mean_interval


def score_decomposition_rows(
    rows: Sequence[Mapping[str, Any]], num_resamples: int = 10_000
) -> tuple[dict[str, float], list[dict[str, Any]]]:
    """Means with their 95% bootstrap intervals, and one scored row for each of the given ones.

    Equality is over the questions with gold query triplets, structure over those with gold steps,
    `parsed` over all. What could not be read scores 0 (R29).

    Args:
        rows: `gold` and `predicted` (lists of three texts each; `predicted` None where nothing
            could be read), `steps` (texts with #n) and `error`.
        num_resamples: of the bootstrap.

    Returns:
        Summary: `decompose/equal`, `decompose/equal_arguments`, `decompose/structure`,
        `decompose/num_triplets`, `decompose/parsed`, each with `/low` and `/high`, absent where no
        question has such gold; and counts.

    Raises:
        ValueError: no rows.
    """
    if not rows:
        raise ValueError("no rows to score; measure at least one question")
    written = [_triplets(row["predicted"] or ()) for row in rows]
    scored = [{**row, "parsed": float(bool(one))} for row, one in zip(rows, written, strict=True)]
    gold = [i for i, row in enumerate(rows) if row["gold"]]
    steps = [i for i, row in enumerate(rows) if row["steps"]]
    if gold:
        _, each = decomposition_scores(
            [written[i] for i in gold], [_triplets(rows[i]["gold"]) for i in gold]
        )
        for i, figures in zip(gold, each, strict=True):
            scored[i] |= figures
    if steps:
        _, each = structure_scores(
            [written[i] for i in steps], [step_links(rows[i]["steps"]) for i in steps]
        )
        for i, figures in zip(steps, each, strict=True):
            scored[i] |= figures
    summary = {
        "count/gold_triplets": float(len(gold)),
        "count/gold_steps": float(len(steps)),
        "count/errors": float(sum(bool(row["error"]) for row in rows)),
    }
    for name in ("equal", "equal_arguments", "structure", "num_triplets", "parsed"):
        values = [row[name] for row in scored if name in row]
        if values:
            found = mean_interval(values, num_resamples=num_resamples)
            key = f"decompose/{name}"
            summary |= {key: found.mean, f"{key}/low": found.low, f"{key}/high": found.high}
    return summary, scored


def _triplets(texts: Sequence[Sequence[str]]) -> list[QueryTriplet]:
    return [QueryTriplet.parse(*fields) for fields in texts]
