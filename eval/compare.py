"""Two measured parts on the items that both have.   python eval/compare.py first=a second=b"""

import json
import sys
from pathlib import Path

import hydra
from omegaconf import DictConfig

from triax.records.files import read_jsonl
from triax.scoring.significance import paired_bootstrap


@hydra.main(version_base="1.3", config_path="../conf", config_name="compare")
def main(cfg: DictConfig) -> None:
    first, second = _rows(cfg, cfg.first), _rows(cfg, cfg.second)
    shared = [i for i in first if i in second]
    if not shared:
        sys.exit(f"error: {cfg.first} and {cfg.second} share no item; measure both on one set")
    for field in cfg.fields:
        pairs = [
            (float(first[i][field]), float(second[i][field]))
            for i in shared
            # EM and F1 of a slot whose passages do not answer say nothing.
            if field in first[i]
            and field in second[i]
            and (field not in ("em", "f1") or first[i].get("is_here", True))
        ]
        if not pairs:
            continue
        found = paired_bootstrap(*zip(*pairs, strict=True))
        means = [sum(side) / len(pairs) for side in zip(*pairs, strict=True)]
        row = {"field": field, "first": means[0], "second": means[1]}
        row |= {"difference": found.difference, "low": found.low, "high": found.high}
        row |= {"p_value": found.p_value, "items": found.num_questions}
        print(json.dumps({k: round(v, 4) if isinstance(v, float) else v for k, v in row.items()}))


def _rows(cfg: DictConfig, name: str) -> dict[str, dict]:
    path = Path(cfg.paths.runs).expanduser() / "parts" / name / "per_item.jsonl"
    if not path.exists():
        there = sorted(one.parent.name for one in path.parent.parent.glob("*/per_item.jsonl"))
        sys.exit(f"error: {path} is missing; run `python eval/parts.py` first. There is {there}")
    return {row["id"]: row for row in read_jsonl(path)}


if __name__ == "__main__":
    main()
