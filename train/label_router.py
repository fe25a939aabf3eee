"""Router labels from the ranks that two retrievers give the gold documents; no model is asked.

python eval/gold_ranks.py name=hotpotqa-train corpus=hotpotqa corpus.split=train
python train/label_router.py name=hotpotqa 'ranks=[runs/ranks/hotpotqa-train]'

Prints how many questions need the graph, by type and by number of names, as the paper's appendix.
"""

import json
import sys
from pathlib import Path

import hydra
from omegaconf import DictConfig, OmegaConf

from triax.records.files import read_jsonl, write_json, write_jsonl
from triax.reporting.tables import markdown_table
from triax.routing.labels import GoldRanks, label, label_mix, part_of
from triax.routing.rules import count_names


@hydra.main(version_base="1.3", config_path="../conf", config_name="label_router")
def main(cfg: DictConfig) -> None:
    rows, examples = [], []
    for place in cfg.ranks:
        sides = [_ranks(Path(place).expanduser(), side) for side in (cfg.vanilla, cfg.graph)]
        if sides[0].keys() != sides[1].keys():
            sys.exit(f"error: {place} has other questions by {cfg.vanilla} than by {cfg.graph}")
        for key, row in sides[0].items():
            vanilla, graph = (GoldRanks(tuple(side[key]["ranks"])) for side in sides)
            rows.append(row)
            examples.append(label(row["id"], row["question"], row["kind"], vanilla, graph, cfg.cut))
    folder = Path(cfg.paths.artifacts).expanduser() / "router_labels" / cfg.name
    parts = [cfg.part or part_of(row["question"]) for row in rows]
    counts = {}
    for part in dict.fromkeys(parts):
        kept = [one for one, own in zip(examples, parts, strict=True) if one and own == part]
        counts[part] = write_jsonl(folder / f"{part}.jsonl", (one.to_json() for one in kept))
    by_kind = label_mix(examples, [row["kind"] or "unknown" for row in rows])
    names = [f"{min(count_names(row['question']), 4)} names" for row in rows]
    by_names = dict(sorted(label_mix(examples, names).items()))
    mix = by_kind | {group: found for group, found in by_names.items() if group != "all"}
    write_json(folder / "mix.json", mix)
    write_json(folder / "config.json", OmegaConf.to_container(cfg, resolve=True))
    shares = {group: found | {"questions": sum(found.values())} for group, found in mix.items()}
    columns = ("questions", "graph_only", "vanilla_only", "both", "neither")
    print(markdown_table(shares, {name: name.replace("_", " ") for name in columns}))
    print(json.dumps({"folder": str(folder), "examples": counts}))


def _ranks(folder: Path, side: str) -> dict[str, dict]:
    path = folder / f"{side}.jsonl"
    if not path.is_file():
        sys.exit(f"error: {path} is not there; run eval/gold_ranks.py with systems=[...,{side}]")
    return {row["id"]: row for row in read_jsonl(path)}


if __name__ == "__main__":
    main()
