"""The runs of a sweep or a search, as one table and one figure.

python eval/study.py study=hotpot

Takes every run whose configuration says study=<study>, and every job that was planned, finds what
was varied, and writes runs/studies/<study>/table.jsonl, table.md and, where a varied setting is a
number, figure.svg with a line for each choice of the others; of a search, the best score so far by
trial. It is all one whether the runs come from an array, from Hydra's launchers, from agents of W&B
or from Optuna. Refuses while a run is not scored, and says what became of it.
"""

import json
import sys
from pathlib import Path

import hydra
import tracked
import wiring
from omegaconf import DictConfig

from triax.records.files import atomic_write, write_jsonl
from triax.reporting.curves import curves_svg
from triax.reporting.studies import best_so_far, is_number, lines_over, settings_of, shown, varied
from triax.reporting.tables import markdown_table
from triax.runs.jobs import MANIFEST, read_jobs
from triax.runs.statuses import load_all

# What names or places a run, and does not change its figures.
ASIDE = ("name", "study", "adapters", *wiring.IGNORED)


@hydra.main(version_base="1.3", config_path="../conf", config_name="study")
def main(cfg: DictConfig) -> None:
    runs = Path(cfg.paths.runs).expanduser()
    folder = runs / "studies" / cfg.study
    configs, swept = _configs(runs, cfg.study), []
    planned = read_jobs(folder / MANIFEST) if (folder / MANIFEST).exists() else []
    if planned:
        swept = list(planned[0].settings)
    statuses = load_all(folder)
    started = {name for name, one in statuses.items() if not name.startswith("prepare-")}
    names = sorted({job.name for job in planned} | set(configs) | started)
    scores = {name: _scores(runs / "answer" / name / "metrics.json") for name in names}
    faults = {
        name: _fault(statuses.get(name), name in configs)
        for name, found in scores.items()
        if found is None or _is_unfinished(statuses.get(name))
    }
    if not names:
        _refuse(f"no run of study {cfg.study} in {runs / 'answer'}; there: {_studies(runs)}")
    if faults and (not cfg.partial or len(faults) == len(names)):
        _refuse(
            f"{len(faults)} of {len(names)} runs are not scored; run eval/score.py for those that "
            "are answered, start the others again, or give partial=true" + _listed(faults)
        )
    kept = {name: configs[name] for name in names if name not in faults}
    rows, names = _rows(kept, scores, swept)
    table = markdown_table({shown(settings) or name: found for settings, found, name in rows})
    table += f"\n\nNot in it:{_listed(faults)}" if faults else ""
    write_jsonl(
        folder / "table.jsonl",
        ({"run": name, "settings": settings, **found} for settings, found, name in rows),
    )
    with atomic_write(folder / "table.md") as stream:
        stream.write(table + "\n")
    print(f"{cfg.study}: {len(rows)} runs, varied: {', '.join(names) or 'nothing'}\n\n{table}")
    _draw(cfg, folder, rows, names, is_search=all("search" in one for one in kept.values()))
    config = {"study": cfg.study, "runs": list(kept), "varied": list(names)}
    with tracked.tracked(cfg, "study", str(cfg.study), folder, config) as tracker:
        tracked.tell_study(tracker, str(cfg.study), folder, rows, runs / "answer")
    print(json.dumps({"folder": str(folder)}))


def _configs(runs: Path, study: str) -> dict[str, dict]:
    found = {}
    for path in sorted((runs / "answer").glob("*/config.json")):
        config = json.loads(path.read_text("utf-8"))
        if config.get("study") == study:
            found[path.parent.name] = config
    return found


def _studies(runs: Path) -> list[str]:
    configs = [json.loads(p.read_text("utf-8")) for p in (runs / "answer").glob("*/config.json")]
    return sorted({config["study"] for config in configs if config.get("study")})


def _is_unfinished(status) -> bool:
    """Scores of a run that was taken up again and did not end well are of what was before."""
    return status is not None and status.state != "finished"


def _fault(status, is_claimed: bool) -> str:
    if _is_unfinished(status):
        return status.told()
    return "answered in part or in full, not scored" if is_claimed else "not started"


def _listed(faults: dict[str, str]) -> str:
    return "".join(f"\n- {name}: {fault}" for name, fault in faults.items())


def _refuse(why: str) -> None:
    sys.exit(f"error: {why}")


def _rows(configs: dict, scores: dict, swept: list[str]) -> tuple[list[tuple], list[str]]:
    """(settings, scores, name) of each run by rising settings, and what was varied."""
    names = varied(configs, ASIDE)
    # As it was planned: the setting that was named first is the first.
    names.sort(key=lambda name: swept.index(name) if name in swept else len(swept))
    rows = [(settings_of(configs[name], names), scores[name], name) for name in configs]
    rows.sort(
        key=lambda row: [(not is_number(v), v if is_number(v) else str(v)) for v in row[0].values()]
    )
    return rows, names


def _draw(cfg: DictConfig, folder: Path, rows: list, names: list[str], is_search: bool) -> None:
    numbers = [name for name in names if all(is_number(row[0][name]) for row in rows)]
    over = cfg.over or (numbers[0] if numbers else None)
    try:
        if is_search and not cfg.over:
            over = "trial"
            by_name = sorted(rows, key=lambda row: row[2])
            lines = best_so_far([row[1].get(cfg.metric) for row in by_name], cfg.direction)
        elif over is None:
            print("no figure: nothing that is a number was varied")
            return
        else:
            lines = lines_over([row[:2] for row in rows], over, cfg.metric)
        figure = curves_svg(lines, over, cfg.metric, cfg.study)
    except ValueError as error:
        _refuse(str(error))
    with atomic_write(folder / "figure.svg") as stream:
        stream.write(figure)


def _scores(path: Path) -> dict | None:
    return json.loads(path.read_text("utf-8")) if path.is_file() else None


if __name__ == "__main__":
    main()
