"""A trained router and its controls on labelled questions, and what each costs and saves.

python eval/routing.py labels=artifacts/router_labels/hotpotqa part=test

With `searched_index=` (a folder of eval/index.py, of the corpus that the labels are of) the gates
over a first search are controls too. With two answered and scored runs, vanilla_run= and
graph_run=, one a side, every router is also scored by the answers that its routes choose, over all
questions of both runs that it did not learn from; with rewritten_run= (+sweep=rewritten)
tau is swept.
"""

import asyncio
import json
import sys
import time
from pathlib import Path

import hydra
import routing_answers
import routing_sweeps
import wiring
from hydra.utils import instantiate
from omegaconf import DictConfig, OmegaConf

from triax.indexing.store import load_index
from triax.records.files import read_jsonl, write_json
from triax.records.questions import Question
from triax.records.routes import RouterExample
from triax.reporting.tables import markdown_table
from triax.routing.asked import AskedRouter
from triax.routing.first_search import FirstSearch
from triax.routing.fitted import TfidfReader, fit_count, fit_kinds
from triax.routing.gated import RetrievalGate, SearchReader, fit_gate
from triax.routing.rules import FixedRouter, OracleRouter, RandomRouter, count_names, count_words
from triax.routing.trained import TrainedRouter
from triax.scoring.routing import area, area_interval, routing_intervals, score_routes
from triax.scoring.thresholds import Selection
from triax.tracking.progress import track

COLUMNS = {
    "routing/f1": "F1",
    "routing/precision": "precision",
    "routing/recall": "recall",
    "routing/graph_ratio": "graph ratio",
    "routing/objective": "objective",
    "routing/area": "AUC",
    "ms_alone": "ms alone",
    "ms_batch": "ms in 64",
    "answer/graph_ratio": "answers' graph ratio",
    "answer/em": "EM",
    "answer/f1": "answer F1",
    "retrieval/recall@5": "R@5",
}
ANSWERS = ("answer/graph_ratio", "answer/em", "answer/f1", "retrieval/recall@5")
SEARCHING = ("gated", "gated_boosted")


@hydra.main(version_base="1.3", config_path="../conf", config_name="routing")
def main(cfg: DictConfig) -> None:
    folder = Path(cfg.labels).expanduser()
    test = Path(cfg.test_labels or folder).expanduser()
    train, validation, asked = (
        _examples(place, part)
        for place, part in ((folder, "train"), (folder, "validation"), (test, cfg.part))
    )
    needs = [one.needs_graph for one in asked]
    questions = [Question(one.id, one.question, kind=one.kind) for one in asked]
    sides = routing_answers.read_sides(cfg)
    answered = routing_answers.questions(sides, asked, test, cfg.part, [*train, *validation])
    routers = _routers(cfg, train, validation, asked)
    table, swept, answers = {}, {}, {}
    for name, router in routers.items():
        routings = asyncio.run(router.route(questions))
        table[name] = _routing([one.route == "graph" for one in routings], needs)
        table[name] |= _asked_speed(cfg) if name == "asked" else _speed(router, questions)
        swept[name] = routing_sweeps.margins(router, questions, routings)
        if swept[name] is not None:
            table[name] |= _area(swept[name], needs)
        if answered:
            routed = asyncio.run(router.route(answered))
            answers[name] = routing_answers.Routed(
                [one.route == "graph" for one in routed],
                routing_sweeps.margins(router, answered, routed),
                [one.p_graph for one in routed],
            )
            table[name] |= routing_answers.scores(answers[name].to_graph, answered, sides)
    print(f"{folder.name}, {cfg.part}: {len(asked)} questions, {sum(needs)} need the graph")
    if answered:
        print(f"answers of {len(answered)} questions")
    used = {
        key: title for key, title in COLUMNS.items() if any(key in row for row in table.values())
    }
    print("\n" + markdown_table(table, used))
    out = Path(cfg.paths.runs).expanduser() / "routing" / cfg.name
    for stale in out.glob("*.svg"):  # of a call with other runs
        stale.unlink()
    if answered:
        routing_answers.compare(answers, answered, sides, cfg.baseline)
        print(f"\nthe {cfg.share:g} of the questions with the highest margins to the graph:")
        equal = routing_answers.compare_at_share(answers, answered, sides, cfg.share, "trained")
        write_json(out / "at_share.json", equal)
        print("\n" + markdown_table(equal, {key: COLUMNS[key] for key in ANSWERS if key in used}))
        routing_sweeps.draw_answers(out, table, answers, answered, sides)
        routing_sweeps.draw_taus(out, answers, answered, sides)
    else:
        routing_sweeps.draw_labels(out, table, swept, needs)
    told = {"config": OmegaConf.to_container(cfg, resolve=True), **table}
    write_json(out / "metrics.json", told)
    print(json.dumps({"folder": str(out)}))


def _routers(cfg: DictConfig, train, validation, asked) -> dict:
    """Every router by name; controls are fitted on train and validation only."""
    learnt, select = [*train, *validation], instantiate(cfg.select)
    made = {
        "always_vanilla": lambda: FixedRouter("vanilla"),
        "always_graph": lambda: FixedRouter("graph"),
        "oracle": lambda: OracleRouter({one.id: one.needs_graph for one in asked}),
        "entity_count": lambda: instantiate(cfg.router_entity_count),
        "name_count": lambda: fit_count(count_names, learnt, select),
        "kind": lambda: fit_kinds(learnt, select),
        "asked": lambda: _asked(cfg),
        "word_count": lambda: fit_count(count_words, learnt, select),
        "tfidf": lambda: TrainedRouter(TfidfReader().fit(train, validation, select)),
        "gated": lambda: _gate(cfg, learnt, select),
        "gated_boosted": lambda: _boosted(cfg, train, validation, select),
        "trained": lambda: instantiate(cfg.router_trained),
        "random": lambda: RandomRouter(cfg.random_ratio, cfg.seed),
    }
    if unknown := sorted(set(cfg.systems) - set(made)):
        sys.exit(f"error: systems has {unknown}; expected some of {sorted(made)}")
    left = [name for name in cfg.systems if name in SEARCHING and not cfg.searched_index]
    if left:
        print(
            f"left out: {', '.join(left)}, which search; give searched_index= to have them",
            flush=True,
        )
    return {name: made[name]() for name in cfg.systems if name not in left}


def _asked(cfg: DictConfig) -> AskedRouter:
    return instantiate(cfg.router_asked)(completer=wiring.open_completer(cfg, _calls(cfg)))


def _calls(cfg: DictConfig) -> Path:
    return Path(cfg.paths.runs).expanduser() / "routing" / cfg.name / "calls.jsonl"


def _asked_speed(cfg: DictConfig) -> dict[str, float]:
    """Milliseconds a call as the ledger has them, for a second time the cache would answer."""
    paid = [row["seconds"] for row in read_jsonl(_calls(cfg)) if not row["is_cached"]]
    return {"ms_alone": 1000 * sum(paid) / len(paid)} if paid else {}


def _unfitted(cfg: DictConfig) -> RetrievalGate:
    folder = Path(cfg.searched_index).expanduser()
    if not (folder / "manifest.json").is_file():
        sys.exit(f"error: {folder} holds no index; run eval/index.py first")
    encoder = instantiate(cfg.encoder)
    made = instantiate(cfg.router_gated)
    retriever = made.keywords["retriever"](index=load_index(folder, encoder), encoder=encoder)
    return made(retriever=retriever)


def _gate(cfg: DictConfig, learnt, select: Selection) -> RetrievalGate:
    gate = _unfitted(cfg)
    with track("fit the gate", len(learnt)) as progress:
        gate = fit_gate(gate, learnt, select, progress)
    print(f"gated: {gate.signal} below {gate.threshold:.4g} goes to the graph")
    return gate


def _boosted(cfg: DictConfig, train, validation, select: Selection) -> TrainedRouter:
    gate = _unfitted(cfg)
    search = FirstSearch(gate.retriever, gate.num_chunks, gate.reader)
    with track("fit the boosted gate", len(train)) as progress:
        reader = SearchReader(search).fit(
            train, validation, select, seed=cfg.seed, progress=progress
        )
    return TrainedRouter(reader, name="gated_boosted")


def _examples(folder: Path, part: str) -> list[RouterExample]:
    path = folder / f"{part}.jsonl"
    if not path.is_file():
        sys.exit(f"error: {path} is not there; run train/label_router.py first")
    return [RouterExample.from_json(row) for row in read_jsonl(path)]


def _routing(routes: list[bool], needs: list[bool]) -> dict[str, float]:
    scores, intervals = score_routes(routes, needs), routing_intervals(routes, needs)
    row = {}
    for name, (low, high) in intervals.items():
        key = f"routing/{name}"
        row |= {key: getattr(scores, name), f"{key}/low": low, f"{key}/high": high}
    return row


def _area(margins: list[float], needs: list[bool]) -> dict[str, float | None]:
    low, high = area_interval(margins, needs) or (None, None)
    key = "routing/area"
    return {key: area(margins, needs), f"{key}/low": low, f"{key}/high": high}


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


if __name__ == "__main__":
    main()
