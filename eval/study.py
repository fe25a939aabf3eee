"""The runs of a sweep, as one table and one figure.

python eval/study.py study=hotpot

Takes every run whose configuration says study=<study> (the experiments sweep_* do), finds what was
varied, and writes runs/studies/<study>/table.jsonl, table.md and, where a varied setting is a
number, figure.svg with a line for each choice of the others. Refuses while a run is not scored.
"""

import json
import sys
from pathlib import Path

import hydra
from omegaconf import DictConfig

from triax.records.files import atomic_write, write_jsonl
from triax.reporting.curves import curves_svg
from triax.reporting.studies import is_number, lines_over, settings_of, shown, varied
from triax.reporting.tables import COLUMNS, markdown_table

# What names or places a run, and does not change its figures.
ASIDE = ("name", "study", "paths", "batch_size", "adapters")


@hydra.main(version_base="1.3", config_path="../conf", config_name="study")
def main(cfg: DictConfig) -> None:
    runs = Path(cfg.paths.runs).expanduser()
    configs, others = {}, set()
    for path in sorted((runs / "answer").glob("*/config.json")):
        config = json.loads(path.read_text("utf-8"))
        if config.get("study") == cfg.study:
            configs[path.parent.name] = config
        elif config.get("study"):
            others.add(config["study"])
    if not configs:
        sys.exit(
            f"error: no run of study {cfg.study} in {runs / 'answer'}; there: {sorted(others)}"
        )
    scores = {name: _scores(runs / "answer" / name / "metrics.json") for name in configs}
    missing = [name for name, found in scores.items() if found is None]
    if missing and (not cfg.partial or len(missing) == len(scores)):
        sys.exit(
            f"error: {len(missing)} of {len(configs)} runs are not scored: "
            f"{', '.join(missing[:9])}; run eval/score.py for them, or give partial=true"
        )
    kept = {name: config for name, config in configs.items() if scores[name] is not None}
    names = varied(kept, ASIDE)
    rows = [(settings_of(kept[name], names), scores[name], name) for name in kept]
    rows.sort(
        key=lambda row: [(not is_number(v), v if is_number(v) else str(v)) for v in row[0].values()]
    )
    table = markdown_table(
        {shown(settings) or name: found for settings, found, name in rows}, COLUMNS
    )
    folder = runs / "studies" / cfg.study
    write_jsonl(
        folder / "table.jsonl",
        ({"run": name, "settings": settings, **found} for settings, found, name in rows),
    )
    with atomic_write(folder / "table.md") as stream:
        stream.write(table + "\n")
    print(f"{cfg.study}: {len(rows)} runs, varied: {', '.join(names) or 'nothing'}\n\n{table}")
    numbers = [name for name in names if all(is_number(row[0][name]) for row in rows)]
    over = cfg.over or (numbers[0] if numbers else None)
    if over is None:
        print("no figure: nothing that is a number was varied")
    else:
        try:
            lines = lines_over([row[:2] for row in rows], over, cfg.metric)
            figure = curves_svg(lines, over, cfg.metric, cfg.study)
        except ValueError as error:
            sys.exit(f"error: {error}")
        with atomic_write(folder / "figure.svg") as stream:
            stream.write(figure)
    print(json.dumps({"folder": str(folder)}))


def _scores(path: Path) -> dict | None:
    return json.loads(path.read_text("utf-8")) if path.is_file() else None


if __name__ == "__main__":
    main()
