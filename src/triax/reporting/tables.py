"""Scores of several runs as one table."""

from collections.abc import Mapping, Sequence
from typing import Any

from triax.records.text import clean

# Seconds of the calls, not of the run: a call that came from the cache counts as when it was made.
COLUMNS = {
    "answer/em": "EM",
    "answer/f1": "F1",
    "answer/lenient": "lenient",
    "retrieval/recall@5": "R@5",
    "rounds": "rounds",
    "cost/calls": "calls",
    "cost/weighted_tokens": "tokens",
    "cost/llm_seconds": "LLM s",
}
# Shown only where a run has it: the scores of an earlier version do not.
_OPTIONAL = "answer/lenient"
_PERCENT = (
    "errors/",
    "answer/lenient",
    "answer/em",
    "answer/f1",
    "retrieval/recall@",
    "retrieval/all@",
    "coverage/",
    "types/",
)


def markdown_table(
    runs: Mapping[str, Mapping[str, Any]], columns: Mapping[str, str] | None = None
) -> str:
    """One row a run, one column a metric; what a run has not measured is a dash, never a zero.

    What is a text already is shown as it is.
    A metric with an entry `<metric>/low` and `/high` shows its interval. EM, F1, lenient accuracy,
    recall, all, coverage and shares of errors are in per cent.

    Args:
        runs: metrics by the name of the run.
        columns: the head of each metric; `COLUMNS` if not given, without lenient accuracy where no
            run has measured it.
    """
    if columns is None:
        is_lenient = any(metrics.get(_OPTIONAL) is not None for metrics in runs.values())
        columns = {key: name for key, name in COLUMNS.items() if is_lenient or key != _OPTIONAL}
    head = ["run", *map(_plain, columns.values())]
    rows = [
        [_plain(name), *(_cell(metrics, key) for key in columns)] for name, metrics in runs.items()
    ]
    widths = [max(len(row[i]) for row in [head, *rows]) for i in range(len(head))]
    lines = [_line(head, widths), _line(["-" * width for width in widths], widths)]
    return "\n".join(lines + [_line(row, widths) for row in rows])


def _cell(metrics: Mapping[str, Any], key: str) -> str:
    value = metrics.get(key)
    if value is None:
        return "–"
    if isinstance(value, str):
        return _plain(value)
    is_share = key.startswith(_PERCENT)
    low, high = metrics.get(f"{key}/low"), metrics.get(f"{key}/high")
    shown = _number(value, is_share)
    if low is None or high is None:
        return shown
    return f"{shown} [{_number(low, is_share)}, {_number(high, is_share)}]"


def _number(value: float | int, is_share: bool) -> str:
    """A count as it is; else one decimal, two digits below 1 (no share), none from 1000 on."""
    if isinstance(value, int) and not is_share:
        return f"{value:,}"
    value = 100.0 * value if is_share else value
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.2g}" if 0 < abs(value) < 0.95 and not is_share else f"{value:.1f}"


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    return "| " + " | ".join(cell.ljust(width) for cell, width in zip(cells, widths)) + " |"


def _plain(name: str) -> str:
    """A name that cannot end its cell or its row (R24)."""
    return " ".join(clean(name).split()).replace("|", "\\|")
