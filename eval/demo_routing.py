"""The router's part of the demo: labels without a model, a short training, routes."""

import asyncio

import wiring
from hydra.utils import instantiate
from omegaconf import DictConfig
from rich.console import Console
from rich.table import Table

from triax.models.trained_router import TrainedRouteReader
from triax.records.files import write_jsonl
from triax.retrieval.graph import open_graph_retriever, table_scores
from triax.routing.gold_ranks import rank_gold
from triax.routing.labels import label, label_mix, part_of
from triax.routing.trained import TrainedRouter
from triax.runs.artifacts import artifact_folder
from triax.runs.folder import claim
from triax.tracking.progress import track
from triax.training.loop import fit


def show_routing(cfg: DictConfig, corpus, index, encoder, out: Console) -> None:
    """Labels the questions of the other split, learns from them, and routes those of this one."""
    out.rule("which questions need the graph")
    asked = [one for one in corpus.questions if one.gold_document_ids]
    known = {one.id for one in asked}
    others = instantiate(cfg.corpus, split=None).questions
    learnt = [one for one in others if one.id not in known and one.gold_document_ids]
    documents = [chunk.document_id for chunk in index.tables.all_chunks()]
    retriever = open_graph_retriever(index, encoder)
    sides = [
        rank_gold(score, documents, [*learnt, *asked])
        for score in (table_scores(index, encoder, "encoder")[1].scores, retriever.scores)
    ]
    examples = [
        label(one.id, one.text, one.kind, vanilla, graph, cut=None)
        for one, vanilla, graph in zip([*learnt, *asked], *sides, strict=True)
    ]
    mix = label_mix(examples[: len(learnt)], ["" for _ in learnt])["all"]
    out.print(
        f"{len(learnt)} questions of the other split, by the ranks that dense retrieval and "
        f"HippoRAG 2 give their gold passages: {mix}"
    )
    inputs = wiring.plain(cfg.routing) | {"index": index.folder.name, "seed": 0}
    folder = artifact_folder(cfg.paths.runs, "demo", "demo", "router", inputs)
    labels = folder.parent / f"{folder.name}-labels"
    parts = {"train": [], "validation": []}
    for one in filter(None, examples[: len(learnt)]):
        parts["train" if part_of(one.question) == "train" else "validation"].append(one.to_json())
    for part, rows in parts.items():
        write_jsonl(labels / f"{part}.jsonl", rows)
    task = instantiate(cfg.routing.task, labels=str(labels), _convert_="all")
    schedule = instantiate(cfg.routing.schedule)
    run = claim(folder, inputs)
    tracker = instantiate(cfg.routing.tracker)(folder=run.path, name="router", config=inputs)
    with track("train the router", schedule.steps) as progress:
        result = fit(
            task,
            instantiate(cfg.routing.optimizer),
            run.path,
            tracker,
            schedule,
            progress=progress,
        )
    tracker.finish()
    router = TrainedRouter(TrainedRouteReader(str(result.folder)))
    routings = asyncio.run(router.route(asked))
    out.print(
        f"Trained in {result.seconds:.0f} s on {len(parts['train'])} questions, threshold chosen "
        f"on {len(parts['validation'])}. Where it sends the {cfg.corpus.split} questions:"
    )
    table = Table("question", "p vanilla", "p graph", "route", "by its ranks")
    for question, routing, example in zip(asked, routings, examples[len(learnt) :], strict=True):
        table.add_row(
            question.text,
            f"{routing.p_vanilla:.2f}",
            f"{routing.p_graph:.2f}",
            routing.route,
            "graph" if example and example.needs_graph else "vanilla",
        )
    out.print(table)
