"""A trained router and its controls on labelled questions, and what each costs and saves.

python eval/routing.py labels=artifacts/router_labels/hotpotqa part=test

With two answered and scored runs of the same questions, one a side, every router is also scored by
the answers that its routes would have given: vanilla_run=... graph_run=...
"""

import asyncio
import json
import sys
import time
from pathlib import Path

import hydra
from hydra.utils import instantiate
from omegaconf import DictConfig, OmegaConf

from triax.records.files import atomic_write, read_jsonl, write_json, write_jsonl
from triax.records.questions import Question
from triax.records.routes import RouterExample
from triax.reporting.curves import curves_svg
from triax.reporting.tables import markdown_table
from triax.routing.fitted import TfidfReader, fit_count
from triax.routing.rules import FixedRouter, OracleRouter, RandomRouter, count_names, count_words
from triax.routing.trained import TrainedRouter
from triax.scoring.routing import routing_intervals, score_routes
from triax.scoring.significance import mean_interval, paired_bootstrap
from triax.scoring.thresholds import sweep_thresholds, to_graph

COLUMNS = {
    "routing/f1": "F1",
    "routing/precision": "precision",
    "routing/recall": "recall",
    "routing/graph_ratio": "graph ratio",
    "routing/objective": "objective",
    "ms_alone": "ms alone",
    "ms_batch": "ms in 64",
    "answer/em": "EM",
    "answer/f1": "answer F1",
    "retrieval/recall@5": "R@5",
}


@hydra.main(version_base="1.3", config_path="../conf", config_name="routing")
def main(cfg: DictConfig) -> None:
    folder = Path(cfg.labels).expanduser()
    train, validation = (_examples(folder, one) for one in ("train", "validation"))
    asked = _examples(Path(cfg.test_labels or folder).expanduser(), cfg.part)
    sides = _answered(cfg)
    if sides:
        asked = [one for one in asked if one.id in sides["graph"]]
    questions = [Question(one.id, one.question, kind=one.kind) for one in asked]
    needs = [one.needs_graph for one in asked]
    routers = _routers(cfg, train, validation, asked)
    table, rows = {}, {}
    for name, router in routers.items():
        routes = [one.route == "graph" for one in asyncio.run(router.route(questions))]
        table[name] = _routing(routes, needs) | _speed(router, questions)
        if sides:
            rows[name] = _composed(routes, asked, sides)
            for key in rows[name][0]:
                table[name] |= _interval(key, [row[key] for row in rows[name]])
    print(f"{folder.name}, {cfg.part}: {len(asked)} questions, {sum(needs)} need the graph\n")
    used = {
        key: title for key, title in COLUMNS.items() if any(key in row for row in table.values())
    }
    print(markdown_table(table, used))
    out = Path(cfg.paths.runs).expanduser() / "routing" / cfg.name
    write_json(out / "metrics.json", {"config": OmegaConf.to_container(cfg, resolve=True), **table})
    if sides:
        _compare(rows, cfg.baseline)
    if (reader := getattr(routers.get("trained"), "reader", None)) is not None:
        _sweep(out, reader, asked, sides, table)
    print(json.dumps({"folder": str(out)}))


def _routers(cfg: DictConfig, train, validation, asked) -> dict:
    """Every router by name; controls are fitted on train and validation only."""
    made = {
        "always_vanilla": lambda: FixedRouter("vanilla"),
        "always_graph": lambda: FixedRouter("graph"),
        "oracle": lambda: OracleRouter({one.id: one.needs_graph for one in asked}),
        "entity_count": lambda: instantiate(cfg.router_entity_count),
        "name_count": lambda: fit_count(count_names, [*train, *validation], cfg.select),
        "word_count": lambda: fit_count(count_words, [*train, *validation], cfg.select),
        "tfidf": lambda: TrainedRouter(TfidfReader().fit(train, validation, cfg.select)),
        "trained": lambda: instantiate(cfg.router_trained),
        "random": lambda: RandomRouter(cfg.random_ratio, cfg.seed),
    }
    if unknown := sorted(set(cfg.systems) - set(made)):
        sys.exit(f"error: systems has {unknown}; expected some of {sorted(made)}")
    return {name: made[name]() for name in cfg.systems}


def _examples(folder: Path, part: str) -> list[RouterExample]:
    path = folder / f"{part}.jsonl"
    if not path.is_file():
        sys.exit(f"error: {path} is not there; run train/label_router.py first")
    return [RouterExample.from_json(row) for row in read_jsonl(path)]


def _answered(cfg: DictConfig) -> dict[str, dict[str, dict]]:
    """The scored rows of both runs by question."""
    if not (cfg.vanilla_run and cfg.graph_run):
        return {}
    found = {}
    for side in ("vanilla", "graph"):
        path = Path(cfg[f"{side}_run"]).expanduser() / "per_question.jsonl"
        if not path.is_file():
            sys.exit(f"error: {path} is not there; run eval/answer.py and eval/score.py first")
        found[side] = {row["question_id"]: row for row in read_jsonl(path)}
    return found


def _routing(routes: list[bool], needs: list[bool]) -> dict[str, float]:
    scores, intervals = score_routes(routes, needs), routing_intervals(routes, needs)
    row = {}
    for name, (low, high) in intervals.items():
        key = f"routing/{name}"
        row |= {key: getattr(scores, name), f"{key}/low": low, f"{key}/high": high}
    return row


def _speed(router, questions: list[Question]) -> dict[str, float]:
    """Milliseconds a question, alone and in batches of 64, after one call that compiles."""
    asyncio.run(router.route(questions[:64]))
    asyncio.run(router.route(questions[:1]))
    started = time.perf_counter()
    asyncio.run(router.route(questions[:64]))
    together = time.perf_counter() - started
    started = time.perf_counter()
    for question in questions[:16]:
        asyncio.run(router.route([question]))
    alone = time.perf_counter() - started
    counts = len(questions[:16]), len(questions[:64])
    return {"ms_alone": 1000 * alone / counts[0], "ms_batch": 1000 * together / counts[1]}


def _composed(routes: list[bool], asked, sides) -> list[dict[str, float]]:
    """Scores of each answer as the routes choose it from the two runs."""
    rows = []
    for to_the_graph, one in zip(routes, asked, strict=True):
        row = sides["graph" if to_the_graph else "vanilla"][one.id]
        kept = {"answer/em": row["em"], "answer/f1": row["f1"]}
        rows.append(kept | {f"retrieval/{k}": row[k] for k in ("recall@5",) if k in row})
    return rows


def _interval(key: str, values: list[float]) -> dict[str, float]:
    found = mean_interval(values)
    return {key: found.mean, f"{key}/low": found.low, f"{key}/high": found.high}


def _compare(rows: dict, baseline: str) -> None:
    for name, own in rows.items():
        if name == baseline or baseline not in rows:
            continue
        found = paired_bootstrap(
            [row["answer/f1"] for row in own], [row["answer/f1"] for row in rows[baseline]]
        )
        print(
            f"answer F1, {name} - {baseline}: {100 * found.difference:+.1f} "
            f"[{100 * found.low:+.1f}, {100 * found.high:+.1f}]"
        )


def _sweep(out: Path, reader, asked, sides, table) -> None:
    """Graph ratio against F1 at every threshold, the other routers as dots beside it."""
    p = reader.read([one.question for one in asked])
    grid = [round(0.02 * n, 2) for n in range(-49, 50)]
    rows = sweep_thresholds(p[:, 0], p[:, 1], [one.needs_graph for one in asked], grid)
    key, title = ("answer/f1", "answer F1") if sides else ("routing/f1", "F1 of 'needs the graph'")
    points = []
    for row in rows:
        value = row.scores.f1
        if sides:
            routes = to_graph(p[:, 0], p[:, 1], row.threshold)
            composed = _composed(routes, asked, sides)
            value = sum(one["answer/f1"] for one in composed) / len(composed)
        points.append((row.scores.graph_ratio, value))
    write_jsonl(
        out / "sweep.jsonl",
        (
            {"threshold": row.threshold, "graph_ratio": x, key: y}
            for row, (x, y) in zip(rows, points, strict=True)
        ),
    )
    lines = {"trained, every threshold": points}
    lines |= {name: [(row["routing/graph_ratio"], row[key])] for name, row in table.items()}
    with atomic_write(out / "sweep.svg") as stream:
        stream.write(curves_svg(lines, "graph ratio", title, f"{out.name}: thresholds"))


if __name__ == "__main__":
    main()
