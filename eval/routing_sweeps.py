"""Figures of thresholds and of tau, over all values at once (eval/routing.py)."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np
from routing_answers import KEYS, Routed, Sides, values

from triax.records.files import atomic_write, write_jsonl
from triax.records.questions import Question
from triax.records.routes import Routing
from triax.reporting.curves import curves_svg
from triax.routing.gated import RetrievalGate
from triax.routing.rules import CountRouter
from triax.scoring.thresholds import cuts, sweep_answers, sweep_taus, sweep_thresholds


def margins(
    router, questions: Sequence[Question], routings: Sequence[Routing]
) -> list[float] | None:
    """What is compared with a threshold, above which a question goes to the graph; None: nothing.

    That of a gate is its signal, negative; that of a count is the count.
    """
    if isinstance(router, CountRouter):
        return [float(router.count(one.text)) for one in questions]
    if isinstance(router, RetrievalGate):
        return (-router.sufficiency([one.searched for one in questions])).tolist()
    if any(one.p_vanilla is None or one.p_graph is None for one in routings):
        return None
    return [one.p_graph - one.p_vanilla for one in routings]


def draw_labels(
    out: Path, table: dict, swept: dict[str, list[float] | None], needs: Sequence[bool]
) -> None:
    """Graph ratio against F1 of "needs the graph"."""
    rows = {
        name: [
            {"threshold": row.threshold, "graph_ratio": row.scores.graph_ratio, "f1": row.scores.f1}
            for row in sweep_thresholds(np.zeros(len(own)), np.array(own), needs, cuts(own))
        ]
        for name, own in swept.items()
        if own is not None
    }
    lines = {name: _points(own, "graph_ratio", "f1") for name, own in rows.items()}
    chosen = {name: (row["routing/graph_ratio"], row["routing/f1"]) for name, row in table.items()}
    _write(out / "sweep", rows, lines, chosen, "graph ratio", "F1 of 'needs the graph'")


def draw_answers(
    out: Path,
    table: dict,
    answers: dict[str, Routed],
    answered: Sequence[Question],
    sides: Sides,
) -> None:
    """Graph ratio against F1 of the answers, and against R@5 where gold passages are known.

    Chance is the line between the two runs.
    """
    _draw_scores(out / "sweep", table, answers, answered, sides, "answer/f1", "answer F1")
    if all("retrieval/recall@5" in row for row in table.values()):
        _draw_scores(
            out / "sweep_recall", table, answers, answered, sides, "retrieval/recall@5", "R@5"
        )


def _draw_scores(
    path: Path,
    table: dict,
    answers: dict[str, Routed],
    answered: Sequence[Question],
    sides: Sides,
    column: str,
    y_name: str,
) -> None:
    key = KEYS[column]
    vanilla, graph = (values(sides, side, answered, key) for side in ("vanilla", "graph"))
    rows = {
        name: [
            {"threshold": row.setting, "graph_ratio": row.graph_ratio, key: row.score}
            for row in sweep_answers(
                np.zeros(len(answered)), np.array(own.margins), vanilla, graph, cuts(own.margins)
            )
        ]
        for name, own in answers.items()
        if own.margins is not None
    }
    lines = {name: _points(own, "graph_ratio", key) for name, own in rows.items()}
    lines["at random"] = [(0.0, float(np.mean(vanilla))), (1.0, float(np.mean(graph)))]
    chosen = {name: (row["answer/graph_ratio"], row[column]) for name, row in table.items()}
    _write(path, rows, lines, chosen, "graph ratio", y_name)


def draw_taus(
    out: Path, answers: dict[str, Routed], answered: Sequence[Question], sides: Sides
) -> None:
    """Share of questions that are rewritten against F1 of the answers, each router's routes kept.

    Needs a run of rewritten questions, and routers that give probabilities.
    """
    if "rewritten" not in sides:
        print("tau.svg: left out; it needs rewritten_run= (+sweep=rewritten)")
        return
    runs = [values(sides, side, answered, "f1") for side in ("vanilla", "graph", "rewritten")]
    rows = {
        name: [asdict(row) for row in sweep_taus(own.to_graph, own.p_graph, *runs)]
        for name, own in answers.items()
        if all(one is not None for one in own.p_graph)
    }
    if not rows:
        print("tau.svg: left out; none of these routers gives probabilities")
        return
    rows = {
        name: [
            {"tau": row["setting"], "rewritten_ratio": row["rewritten_ratio"], "f1": row["score"]}
            for row in own
        ]
        for name, own in rows.items()
    }
    lines = {name: _points(own, "rewritten_ratio", "f1") for name, own in rows.items()}
    _write(out / "tau", rows, lines, {}, "share of questions that are rewritten", "answer F1")


def _points(rows: Sequence[dict], x: str, y: str) -> list[tuple[float, float]]:
    return [(row[x], row[y]) for row in rows]


def _write(
    path: Path,
    rows: dict[str, list[dict]],
    lines: dict[str, list[tuple[float, float]]],
    chosen: dict[str, tuple[float, float]],
    x_name: str,
    y_name: str,
) -> None:
    """Every setting as a row, and the figure; what was not swept is a dot."""
    write_jsonl(
        path.with_suffix(".jsonl"),
        ({"router": name, **row} for name, own in rows.items() for row in own),
    )
    marked = {name: point for name, point in chosen.items() if name in lines}
    lines = lines | {name: [point] for name, point in chosen.items() if name not in lines}
    title = f"{path.parent.name}: {path.name}"
    with atomic_write(path.with_suffix(".svg")) as stream:
        stream.write(curves_svg(lines, x_name, y_name, title, marked))
