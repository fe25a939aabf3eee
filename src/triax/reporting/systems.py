"""The table that compares systems: answers, retrieval, and what reading and answering cost."""

from collections.abc import Mapping, Sequence
from typing import Any

from triax.reporting.tables import markdown_table

COLUMNS = {
    "answer/em": "EM",
    "answer/f1": "F1",
    "against": "F1 against baseline",
    "answer/lenient": "lenient",
    "retrieval/recall@2": "R@2",
    "retrieval/recall@5": "R@5",
    "cost/index_tokens": "index tokens",
    "cost/weighted_tokens": "query tokens",
    "cost/calls": "calls",
    "cost/seconds": "s",
}


def systems_table(rows: Sequence[Mapping[str, Any]], about: str, baseline: str) -> str:
    """One line about the run, and one row a system, in order.

    Args:
        rows: `system`, its metrics, and `difference` (F1 less that of the baseline, low, high, in
            [-1, 1]) where there is one.
        about: what all systems share.
        baseline: the system that the others are compared with.
    """
    shown = {row["system"]: {**row, "against": _against(row, baseline)} for row in rows}
    head = (
        f"{about}. EM, F1, lenient accuracy and recall in per cent with 95% bootstrap intervals; "
        f"the F1 of {baseline} is taken from that of each system question by question. Tokens are "
        "input + 4 x output: of the calls that read the corpus, and of those for a question; "
        "seconds are wall time a question.\n\n"
    )
    return head + markdown_table(shown, COLUMNS)


def _against(row: Mapping[str, Any], baseline: str) -> str | None:
    if row["system"] == baseline or "difference" not in row:
        return None
    difference, low, high = (100 * one for one in row["difference"])
    return f"{difference:+.1f} [{low:+.1f}, {high:+.1f}]"
