"""Answers of runs in which all questions went one way, put together by route (eval/routing.py)."""

import hashlib
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from omegaconf import DictConfig

from triax.records.files import read_jsonl
from triax.records.questions import Question
from triax.records.routes import RouterExample
from triax.routing.labels import part_of
from triax.scoring.routing import compose
from triax.scoring.significance import mean_interval, paired_bootstrap

KEYS = {"answer/em": "em", "answer/f1": "f1", "retrieval/recall@5": "recall@5"}
KINDS = ("vanilla", "graph")
Sides = dict[str, dict[str, dict]]


class Routed(NamedTuple):
    """Where a router sends the answered questions, and how sure it is; None: it does not say."""

    to_graph: list[bool]
    margins: list[float] | None
    p_graph: list[float | None]


def read_sides(cfg: DictConfig) -> Sides:
    """The scored rows of each run by question, with the question's text; {} without both sides."""
    if not (cfg.vanilla_run and cfg.graph_run):
        if cfg.vanilla_run or cfg.graph_run or cfg.rewritten_run:
            sys.exit("error: answers are composed from vanilla_run= and graph_run=; give both")
        return {}
    found = {}
    for side in ("vanilla", "graph", "rewritten"):
        if not cfg[f"{side}_run"]:
            continue
        folder = Path(cfg[f"{side}_run"]).expanduser()
        rows = []
        for name in ("per_question", "answers"):
            path = folder / f"{name}.jsonl"
            if not path.is_file():
                sys.exit(f"error: {path} is not there; run eval/answer.py and eval/score.py first")
            rows.append({row["question_id"]: row for row in read_jsonl(path)})
        scored, answers = rows
        found[side] = {
            key: row | {"question": answers[key]["question"]} for key, row in scored.items()
        }
    return found


def questions(
    sides: Sides,
    asked: Sequence[RouterExample],
    folder: Path,
    part: str,
    learnt: Sequence[RouterExample],
) -> list[Question]:
    """The questions that all runs answered and that belong to the part.

    One that neither side finds has no label, yet counts in the end: it is in, if its words fall
    into the part, or all of these labels are of the part.
    """
    if not sides:
        return []
    labelled, known = {one.id for one in asked}, {one.id for one in learnt}
    config = folder / "config.json"
    whole = config.is_file() and json.loads(config.read_text("utf-8")).get("part") == part
    first, *others = sides.values()
    found = [
        Question(key, row["question"], kind=row.get("kind", ""))
        for key, row in first.items()
        if all(key in other for other in others)
        and (key in labelled or (key not in known and (whole or part_of(row["question"]) == part)))
    ]
    if not found:
        sys.exit("error: the runs share no question of these labels; answer the same questions")
    return found


def values(sides: Sides, side: str, answered: Sequence[Question], key: str) -> list[float]:
    """The scores of a side in order of the questions."""
    return [sides[side][one.id][key] for one in answered]


def scores(
    to_graph: Sequence[bool], answered: Sequence[Question], sides: Sides
) -> dict[str, float]:
    """Means and intervals of the scores of the answers that the routes choose."""
    row = {"answer/graph_ratio": sum(to_graph) / len(to_graph)}
    for name, key in _known(answered, sides).items():
        found = mean_interval(_composed(to_graph, answered, sides, key))
        row |= {name: found.mean, f"{name}/low": found.low, f"{name}/high": found.high}
    return row


def compare(
    answers: dict[str, Routed], answered: Sequence[Question], sides: Sides, baseline: str
) -> None:
    """Paired differences of answer F1 to the baseline."""
    if baseline not in answers:
        return
    theirs = _composed(answers[baseline].to_graph, answered, sides, "f1")
    for name, own in answers.items():
        if name == baseline:
            continue
        found = paired_bootstrap(_composed(own.to_graph, answered, sides, "f1"), theirs)
        print(
            f"answer F1, {name} - {baseline}: {100 * found.difference:+.1f} "
            f"[{100 * found.low:+.1f}, {100 * found.high:+.1f}]"
        )


def at_share(margins: Sequence[float], answered: Sequence[Question], share: float) -> list[bool]:
    """Sends the share of questions with the highest margins; equal margins by a hash of the id."""
    order = sorted(
        range(len(answered)),
        key=lambda row: (-margins[row], hashlib.sha256(answered[row].id.encode()).digest()),
    )
    sent = set(order[: round(share * len(answered))])
    return [row in sent for row in range(len(answered))]


def compare_at_share(
    answers: dict[str, Routed], answered: Sequence[Question], sides: Sides, share: float, one: str
) -> dict[str, dict[str, float]]:
    """Every router that has margins at the same graph ratio, and `one` paired with the others.

    `chance` is the mean of what sending this share at random gives.
    """
    sent = {
        name: at_share(own.margins, answered, share)
        for name, own in answers.items()
        if own.margins is not None
    }
    known = _known(answered, sides)
    table = {name: scores(routes, answered, sides) for name, routes in sent.items()}
    table["chance"] = {"answer/graph_ratio": share}
    for name, key in known.items():
        vanilla, graph = (np.mean(values(sides, side, answered, key)) for side in KINDS)
        table["chance"][name] = float((1 - share) * vanilla + share * graph)
    for other in sent if one in sent else ():
        for key in known.values():
            if other == one or key == "em":
                continue
            ours, theirs = (_composed(sent[name], answered, sides, key) for name in (one, other))
            found = paired_bootstrap(ours, theirs)
            print(
                f"{key} there, {one} - {other}: {100 * found.difference:+.1f} "
                f"[{100 * found.low:+.1f}, {100 * found.high:+.1f}]"
            )
    return table


def _known(answered: Sequence[Question], sides: Sides) -> dict[str, str]:
    """The scores that both runs have of all questions."""
    return {
        name: key
        for name, key in KEYS.items()
        if all(key in sides[side][one.id] for side in KINDS for one in answered)
    }


def _composed(to_graph, answered, sides, key):
    vanilla, graph = (values(sides, side, answered, key) for side in KINDS)
    return compose(to_graph, vanilla, graph)
