"""Several measured resolutions as one, for figures that need many slots, such as the ECE.

python eval/pool.py name=all 'runs=[resolve-popqa-random-trained,resolve-musique-random-trained]'
"""

import json
import sys
from pathlib import Path

import hydra
from omegaconf import DictConfig

from triax.records.files import atomic_write, read_jsonl, write_json
from triax.reporting.reliability import reliability_svg
from triax.scoring.resolution import resolution_bins, score_resolution


@hydra.main(version_base="1.3", config_path="../conf", config_name="pool")
def main(cfg: DictConfig) -> float:
    parts = Path(cfg.paths.runs).expanduser() / "parts"
    rows = []
    for name in cfg.runs:
        path = parts / name / "per_item.jsonl"
        if not path.exists():
            there = sorted(one.parent.name for one in parts.glob("*/per_item.jsonl"))
            sys.exit(f"error: {path} is missing; run `python eval/parts.py` first; there: {there}")
        found = list(read_jsonl(path))
        if found and "is_here" not in found[0]:
            sys.exit(f"error: {name} is no measured resolution; give runs of part=resolve")
        rows += [{**row, "id": f"{name}/{row['id']}"} for row in found]
    metrics, rows = score_resolution(rows)
    folder = parts / cfg.name
    write_json(folder / "pooled.json", {"runs": list(cfg.runs), "metrics": metrics})
    if bins := resolution_bins(rows):
        with atomic_write(folder / "reliability.svg") as stream:
            stream.write(reliability_svg(bins, cfg.name))
    print(json.dumps({key: round(value, 4) for key, value in metrics.items()}, indent=2))
    print(json.dumps({"folder": str(folder), "items": len(rows)}))
    return metrics.get("calibration/ece", 0.0)


if __name__ == "__main__":
    main()
