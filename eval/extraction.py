"""An extractor against gold triplets, and the share of gold answers that its triplets hold.

python eval/extraction.py name=trained extractor=trained
python eval/extraction.py name=gpt35 extractor=recorded sets=[]
python eval/extraction.py name=spacy extractor=recorded extractor.path=/tmp/spacy.jsonl
python eval/extraction.py name=small extractor=lines llm=local limit=40 answers=false
"""

import asyncio
import json
import time
from pathlib import Path

import hydra
import wiring
from omegaconf import DictConfig

from triax.corpora.triplet_sets import GoldPassage, read_gold
from triax.extraction.recorded import read_extractions
from triax.extraction.run import extract_corpus
from triax.records.documents import Chunk
from triax.records.files import write_json
from triax.records.triplets import Triplet
from triax.scoring.extraction import (
    exact_match,
    f1_interval,
    holds_answer,
    pairs_match,
    precision_recall_f1,
    soft_match,
)
from triax.scoring.significance import mean_interval
from triax.tracking.progress import track

KINDS = {"soft": soft_match, "exact": exact_match, "pairs": pairs_match}


@hydra.main(version_base="1.3", config_path="../conf", config_name="extraction")
def main(cfg: DictConfig) -> None:
    wiring.use_mesh(cfg)
    folder = Path(cfg.paths.runs).expanduser() / "extraction" / cfg.name
    figures: dict[str, dict[str, float]] = {}
    for name in cfg.sets:
        gold = read_gold(Path(cfg.data) / name / "dev.jsonl.gz", cfg.limit)
        said, speed = _extract(cfg, [one.chunk for one in gold], folder / name)
        figures |= {f"{name}/{kind}": row for kind, row in _score(gold, said).items()}
        figures[name] = speed
    if cfg.answers:
        figures["answers"] = _answers(cfg, folder / "answers")
    rounded = {
        key: {name: round(value, 4) for name, value in row.items()} for key, row in figures.items()
    }
    write_json(folder / "metrics.json", rounded)
    for key, row in rounded.items():
        print(key, json.dumps(row))


def _extract(
    cfg: DictConfig, chunks: list[Chunk], folder: Path
) -> tuple[dict[str, tuple[Triplet, ...]], dict[str, float]]:
    """The triplets of each chunk, and how fast they came."""
    extractor = wiring.open_extractor(cfg, folder / "calls.jsonl")
    started = time.monotonic()
    with track("extract", len(chunks)) as progress:
        report = asyncio.run(
            extract_corpus(
                chunks,
                extractor,
                folder,
                batch_size=cfg.batch_size,
                max_failed=1.0,
                progress=progress,
            )
        )
    seconds = time.monotonic() - started
    said = {one.chunk_id: one.triplets for one in read_extractions(folder / "triplets.jsonl")}
    fresh = report.num_chunks - report.num_resumed
    return said, {
        "passages": report.num_chunks,
        "failed_or_empty": report.failed + report.empty,
        "triplets": report.num_triplets,
        "passages_per_s": fresh / seconds,
    }


def _score(
    gold: list[GoldPassage], said: dict[str, tuple[Triplet, ...]]
) -> dict[str, dict[str, float]]:
    """Precision, recall and F1 of each kind of match, with the interval of F1."""
    table = {}
    for kind, match in KINDS.items():
        matches = [
            match([triplet.fields for triplet in said[one.chunk.id]], one.triplets) for one in gold
        ]
        precision, recall, f1 = precision_recall_f1(matches)
        low, high = f1_interval(matches)
        table[kind] = {"precision": precision, "recall": recall, "f1": f1, "low": low, "high": high}
    return table


def _answers(cfg: DictConfig, folder: Path) -> dict[str, float]:
    """Share of the gold steps whose answer stands in a triplet of their own passage."""
    corpus, chunks = wiring.open_corpus(cfg)
    needed = {
        step.document_id for one in corpus.questions for step in one.steps if step.document_id
    }
    said, speed = _extract(cfg, [c for c in chunks if c.document_id in needed], folder)
    by_document: dict[str, list[tuple[str, str, str]]] = {}
    for chunk in chunks:
        for triplet in said.get(chunk.id, ()):
            by_document.setdefault(chunk.document_id, []).append(triplet.fields)
    hits, finals = [], []
    for question in corpus.questions:
        for number, step in enumerate(question.steps):
            if step.document_id is None:
                continue
            is_last = number == len(question.steps) - 1
            answers = [step.answer, *(question.answers if is_last else ())]
            hits.append(float(holds_answer(by_document.get(step.document_id, ()), answers)))
            finals += [hits[-1]] * is_last
    found = {}
    for name, values in (("steps", hits), ("final", finals)):
        interval = mean_interval(values)
        found |= {name: interval.mean, f"{name}_low": interval.low, f"{name}_high": interval.high}
        found[f"num_{name}"] = float(len(values))
    return found | speed


if __name__ == "__main__":
    main()
