"""Scored runs to a table.   python eval/report.py 'names=[first,second]' baseline=first"""

import json
import sys
from pathlib import Path

import hydra
import wiring
from omegaconf import DictConfig

from triax.records.files import read_jsonl
from triax.reporting.tables import markdown_table
from triax.scoring.significance import paired_bootstrap


@hydra.main(version_base="1.3", config_path="../conf", config_name="report")
def main(cfg: DictConfig) -> None:
    folders = {name: wiring.run_folder(cfg, name) for name in cfg.names}
    metrics = {name: _read_metrics(folder) for name, folder in folders.items()}
    print(markdown_table(metrics))
    if cfg.baseline is None:
        return
    rows = {
        name: {row["question_id"]: row for row in read_jsonl(folder / "per_question.jsonl")}
        for name, folder in folders.items()
    }
    base = rows[cfg.baseline]
    for name in cfg.names:
        ids = [i for i in base if i in rows[name] and "f1" in base[i] and "f1" in rows[name][i]]
        if name == cfg.baseline or not ids:
            continue
        found = paired_bootstrap([rows[name][i]["f1"] for i in ids], [base[i]["f1"] for i in ids])
        print(
            f"\nF1 {name} - {cfg.baseline}: {100 * found.difference:+.1f} "
            f"[{100 * found.low:+.1f}, {100 * found.high:+.1f}] on {found.num_questions} questions"
        )


def _read_metrics(folder: Path) -> dict[str, float]:
    path = folder / "metrics.json"
    if not path.exists():
        sys.exit(f"error: {folder} has no metrics.json; run `python eval/score.py` for it first")
    return json.loads(path.read_text(encoding="utf-8"))


if __name__ == "__main__":
    main()
