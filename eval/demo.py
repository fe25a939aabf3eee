"""The whole method on the shipped corpus, with models in process.   python eval/demo.py

Extracts, indexes, answers and scores, then prints a table and the trace of the first question that
took a round, trains a small router and shows which questions it sends to the graph.
Every step is kept: a second call takes up where the first one ended.
"""

import asyncio
import logging
import time

import hydra
import wiring
from demo_routing import show_routing
from hydra.utils import instantiate
from omegaconf import DictConfig
from rich.console import Console

from triax.extraction.recorded import read_extractions
from triax.extraction.run import extract_corpus
from triax.extraction.verbalize import propositions
from triax.indexing.updates import build_index
from triax.pipelines.assembly import Parts, assemble
from triax.pipelines.batch import answer_all
from triax.records.files import read_jsonl, write_json, write_jsonl
from triax.reporting.tables import markdown_table
from triax.reporting.tree import trace_tree
from triax.runs.artifacts import artifact_folder
from triax.runs.folder import claim
from triax.scoring.runs import score_run
from triax.tracking.progress import track

out = Console()


@hydra.main(version_base="1.3", config_path="../conf", config_name="demo")
def main(cfg: DictConfig) -> None:
    wiring.use_mesh(cfg)
    started = time.monotonic()
    logging.getLogger("triax").setLevel(logging.INFO)
    corpus, chunks = wiring.open_corpus(cfg)
    out.rule("[bold]Triax demo")
    out.print(
        f"{len(corpus.documents)} passages, {len(corpus.questions)} questions "
        f"({cfg.corpus.split}); extractor, decomposer and solver are the shipped ones over "
        f"{cfg.encoder.model}, which is the encoder too. No language model is asked."
    )
    model = instantiate(cfg.llm)
    extractions = _extract(cfg, corpus, chunks)
    encoder = instantiate(cfg.encoder)
    index = _index(cfg, chunks, extractions, encoder)
    metrics = {}
    for system in cfg.systems:
        metrics[system], folder = _run(
            cfg, system, corpus, chunks, model, encoder, index, extractions
        )
    out.rule("scores")
    out.print(
        f"Demo corpus, {cfg.corpus.split} split, n = {len(corpus.questions)}; EM, F1 and R@5 in "
        "per cent with 95% bootstrap intervals. Tokens are input + 4 x output, a question."
    )
    print(markdown_table(metrics))
    traces = list(read_jsonl(folder / "traces.jsonl"))
    shown = next((trace for trace in traces if trace["rounds"]), traces[0])
    out.rule(f"the first question that {cfg.systems[-1]} searched for" if shown["rounds"] else "")
    out.print(trace_tree(shown))
    show_routing(cfg, corpus, index, encoder, out)
    out.print(f"Traces and scores: {folder.parent}. Done in {time.monotonic() - started:.0f} s.")


def _extract(cfg: DictConfig, corpus, chunks):
    """Reads every passage live, and keeps what was read."""
    folder = wiring.triplets_folder(cfg, corpus)
    folder.mkdir(parents=True, exist_ok=True)
    extractor = wiring.open_extractor(cfg, folder / "calls.jsonl")
    with track("extract", len(chunks)) as progress:
        report = asyncio.run(
            extract_corpus(chunks, extractor, folder, max_failed=cfg.max_failed, progress=progress)
        )
    found = list(read_extractions(folder / "triplets.jsonl"))
    out.print(f"\nExtraction: {report.to_json()}; the first passage says, among others:")
    for triplet in found[0].triplets[:3]:
        out.print("   " + " | ".join(triplet.fields), markup=False)
    return found


def _index(cfg: DictConfig, chunks, extractions, encoder):
    found = propositions(extractions)
    inputs = {"propositions": [one.id for one in found], "encoder": wiring.plain(cfg.encoder)}
    folder = artifact_folder(cfg.paths.artifacts, "index", "demo", "demo", inputs)
    with track("embed", len(found) + len(chunks)) as progress:
        index = build_index(chunks, found, encoder, folder, extractor="demo", progress=progress)
    out.print(f"\nIndex: {dict(index.manifest['counts'])}")
    return index


def _run(cfg: DictConfig, system: str, corpus, chunks, model, encoder, index, extractions):
    inputs = wiring.plain(cfg) | {"system": system, "index": index.folder.name}
    inputs["adapters"] = wiring.adapters(wiring.plain(cfg.pipelines[system]))
    inputs.pop("paths")
    folder = claim(artifact_folder(cfg.paths.runs, "demo", "demo", system, inputs), inputs)
    completer = wiring.open_completer(cfg, folder / "calls.jsonl", model)
    parts = Parts(completer, encoder, chunks, lambda: index, lambda: extractions)
    pipeline = assemble(instantiate(cfg.pipelines[system]), parts)
    with track(f"answer, {system}", len(corpus.questions)) as progress:
        answers = asyncio.run(
            answer_all(corpus.questions, pipeline, folder.path, progress=progress)
        )
    documents = {chunk.id: chunk.document_id for chunk in chunks}
    metrics, rows = score_run(answers, corpus.questions, documents)
    write_jsonl(folder / "per_question.jsonl", rows)
    write_json(folder / "metrics.json", metrics)
    return metrics, folder.path


if __name__ == "__main__":
    main()
