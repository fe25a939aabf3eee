"""Scores of several runs as one table."""

from collections.abc import Mapping, Sequence
from typing import Any

COLUMNS = {
    "answer/em": "EM",
    "answer/f1": "F1",
    "retrieval/recall@5": "R@5",
    "rounds": "rounds",
    "cost/calls": "calls",
    "cost/weighted_tokens": "tokens",
    "cost/seconds": "s/question",
}
_PERCENT = ("answer/em", "answer/f1", "retrieval/recall@2", "retrieval/recall@5", "retrieval/all@5")


def markdown_table(
    runs: Mapping[str, Mapping[str, Any]], columns: Mapping[str, str] = COLUMNS
) -> str:
    """One row a run, one column a metric; what a run has not measured is a dash, never a zero.

    A metric with an entry `<metric>/low` and `/high` shows its interval. EM, F1 and recall are in
    per cent.
    """
    head = ["run", *columns.values()]
    rows = [[name, *(_cell(metrics, key) for key in columns)] for name, metrics in runs.items()]
    widths = [max(len(row[i]) for row in [head, *rows]) for i in range(len(head))]
    lines = [_line(head, widths), _line(["-" * width for width in widths], widths)]
    return "\n".join(lines + [_line(row, widths) for row in rows])


def _cell(metrics: Mapping[str, Any], key: str) -> str:
    value = metrics.get(key)
    if value is None:
        return "–"
    scale = 100.0 if key in _PERCENT else 1.0
    shown = f"{value * scale:.1f}" if abs(value * scale) < 1000 else f"{value * scale:,.0f}"
    low, high = metrics.get(f"{key}/low"), metrics.get(f"{key}/high")
    if low is None or high is None:
        return shown
    return f"{shown} [{low * scale:.1f}, {high * scale:.1f}]"


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    return "| " + " | ".join(cell.ljust(width) for cell, width in zip(cells, widths)) + " |"
