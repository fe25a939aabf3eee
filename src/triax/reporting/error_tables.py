"""Tables of where the answers of runs go wrong."""

from collections.abc import Mapping

from triax.reporting.tables import markdown_table
from triax.scoring.error_classes import CLASSES

COVERAGE = {
    "count/questions": "questions",
    "errors/accuracy": "accuracy",
    "errors/abstained": "abstained",
    "errors/m1": "M1",
    "errors/m1_accuracy": "accuracy, M1 covered",
    "errors/m1_reasoning": "reasoning share, M1",
    "errors/m3": "M3",
    "errors/m3_accuracy": "accuracy, M3 covered",
    "errors/m3_reasoning": "reasoning share, M3",
}
OF_STATES = {
    "count/wrong": "wrong",
    **{f"errors/class/{name}": name.replace("_", " ") for name in CLASSES},
    "errors/hallucinated": "hallucinated, of all",
}
_PARTS = {
    "all": "",
    "m1_by/answer": "M1 by the answer",
    "m1_by/documents": "M1 by documents",
    "state/resolved": "resolved",
    "state/unresolved": "unresolved",
}
Parts = Mapping[str, Mapping[str, float]]


def error_tables(runs: Mapping[str, Parts], about: str) -> str:
    """A line about the runs, the table of coverage, and one of classes where a run has a state.

    Args:
        runs: what `decompose_errors` gives, by the run's name.
        about: what the runs share.
    """
    rows = {
        ", ".join(filter(None, (name, _PARTS.get(part, part.replace("/", " "))))): _shown(figures)
        for name, parts in runs.items()
        for part, figures in parts.items()
    }
    head = (
        f"{about}. M1: the answer is in what was read (for comparisons, yes and no: all gold "
        "documents are); M3: all entities on the way to it are. Reasoning share: of the wrong "
        "answers, those that are covered. In per cent, with 95% bootstrap intervals.\n\n"
    )
    tables = head + markdown_table(rows, COVERAGE)
    classed = {
        name: figures for name, figures in rows.items() if f"errors/class/{CLASSES[0]}" in figures
    }
    if not classed:
        return tables
    return (
        f"{tables}\n\nThe step that the wrong answers come from, and the questions with a bound "
        f"value that stands in nothing that was read:\n\n{markdown_table(classed, OF_STATES)}"
    )


def _shown(figures: Mapping[str, float]) -> dict[str, float | int]:
    return {
        key: int(value) if key.startswith("count/") else value for key, value in figures.items()
    }
