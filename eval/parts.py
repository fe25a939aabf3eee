"""Measures a resolver or a decomposer by itself.

python eval/parts.py part=resolve set=popqa resolver=few_shot llm=llama_server limit=40

Finished items are kept: a killed run goes on where it was.
"""

import asyncio
import inspect
import json
import sys
from functools import partial
from pathlib import Path

import hydra
import wiring
from hydra.core.hydra_config import HydraConfig
from hydra.utils import get_object, instantiate
from omegaconf import DictConfig

from triax.corpora.jsonl import read_question, read_rows
from triax.corpora.slots import (
    Beside,
    musique_slots,
    popqa_slots,
    question_slots,
    seeded_order,
    seeded_subset,
)
from triax.reasoning.measure import measure_decomposer, measure_resolver
from triax.records.files import atomic_write, write_json, write_jsonl
from triax.records.usage import Usage
from triax.reporting.reliability import reliability_svg
from triax.retrieval.terms import Bm25
from triax.runs.folder import RunFolderError, claim
from triax.scoring.cost import score_cost
from triax.scoring.decomposition_rows import score_decomposition_rows
from triax.scoring.resolution import resolution_bins, score_resolution
from triax.tracking.progress import track

SLOTS = {
    "popqa": popqa_slots,
    "musique": musique_slots,
    "nq_oracle": question_slots,
    "qed": question_slots,
    "xquad_en": question_slots,
}
IGNORED = (*wiring.IGNORED, "name")


@hydra.main(version_base="1.3", config_path="../conf", config_name="parts")
def main(cfg: DictConfig) -> float:
    wiring.use_mesh(cfg)
    group, of_items, measure, score = {
        "resolve": ("resolver", _slots, measure_resolver, score_resolution),
        "decompose": ("decomposer", _questions, measure_decomposer, score_decomposition_rows),
    }[cfg.part]
    items = of_items(cfg)
    config = wiring.plain(cfg)
    other = "decomposer" if group == "resolver" else "resolver"
    unused = [other] if _asks_a_model(cfg[group]) else [other, "llm"]
    for key in unused:
        del config[key]
    config["adapters"] = wiring.adapters(config)
    path = Path(cfg.paths.runs).expanduser() / "parts" / (cfg.name or _name(cfg, group))
    try:
        folder = claim(path, config, IGNORED)
    except RunFolderError as error:
        sys.exit(f"error: {error}")
    part = instantiate(cfg[group])
    if isinstance(part, partial):
        part = part(completer=wiring.open_completer(cfg, folder / "calls.jsonl"))
    with track(f"{cfg.part}, {path.name}", len(items)) as progress:
        rows = asyncio.run(
            measure(
                part, items, folder / "items.jsonl", batch_size=cfg.batch_size, progress=progress
            )
        )
    metrics, rows = score(rows)
    metrics |= _cost(rows)
    write_jsonl(folder / "per_item.jsonl", rows)
    write_json(folder / "metrics.json", metrics)
    if cfg.part == "resolve" and (bins := resolution_bins(rows)):
        with atomic_write(folder / "reliability.svg") as stream:
            stream.write(reliability_svg(bins, path.name))
    print(json.dumps({key: round(value, 4) for key, value in metrics.items()}, indent=2))
    print(json.dumps({"folder": str(folder.path), "items": len(rows)}))
    return metrics.get("resolve/em", metrics.get("decompose/equal", 0.0))


def _slots(cfg: DictConfig):
    if cfg.set not in SLOTS:
        sys.exit(f"error: set={cfg.set} has no slots; expected one of {sorted(SLOTS)}")
    slots = SLOTS[cfg.set](
        Path(cfg.data).expanduser() / cfg.set,
        cfg.split,
        Beside(cfg.negatives, cfg.num_passages, cfg.seed, cfg.absent, Bm25),
    )
    return seeded_subset(slots, cfg.limit, cfg.seed)


def _questions(cfg: DictConfig):
    """The questions with gold query triplets or gold steps, in the order of their ids' hashes."""
    rows = read_rows(Path(cfg.data).expanduser() / cfg.set / f"{cfg.split}.jsonl.gz", ["question"])
    questions = [one for one in map(read_question, rows) if one.gold_query_triplets or one.steps]
    return seeded_order(questions, cfg.seed)[: cfg.limit]


def _asks_a_model(part: DictConfig) -> bool:
    """Whether the part cannot be made without a completer."""
    parameters = inspect.signature(get_object(part._target_)).parameters
    return "completer" in parameters and parameters["completer"].default is inspect.Parameter.empty


def _name(cfg: DictConfig, group: str) -> str:
    """What is measured, and with what."""
    words = [cfg.part, cfg.set, HydraConfig.get().runtime.choices[group]]
    if cfg.part == "resolve":
        words.insert(2, cfg.negatives)
    if _asks_a_model(cfg[group]):
        words.append(cfg.llm.model.rpartition("/")[2])
    return "-".join([*words, *([f"n{cfg.limit}"] if cfg.limit else [])])


def _cost(rows) -> dict[str, float]:
    usages = {row["id"]: Usage(**row["usage"]) for row in rows}
    return score_cost(usages, {row["id"]: row["seconds"] for row in rows})[0]


if __name__ == "__main__":
    main()
