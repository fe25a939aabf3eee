"""A search for settings by Optuna, each trial a run that is answered and scored.

python eval/search.py +search=t2rag study=hotpot-search corpus=hotpotqa

Any number of processes may be called with the same arguments, as the tasks of an array are: they
share the trials, and what a killed one had is taken up by another. What is searched is in
conf/search/; all other arguments are those of eval/answer.py. eval/study.py makes the table.
"""

import json
import sys
from pathlib import Path

import hydra
from hydra.core.hydra_config import HydraConfig
from hydra.utils import instantiate
from omegaconf import DictConfig, OmegaConf
from run_jobs import RUN, STOPPED, say_why

from triax.records.files import write_json
from triax.runs.attempts import Worker
from triax.runs.execute import JobStopped, run_job
from triax.runs.settings import flat
from triax.runs.trials import Proposal, Search, SearchError

# Of the search itself: a search can be made longer.
UNSHARED = ("name", "paths", "search.trials")


@hydra.main(version_base="1.3", config_path="../conf", config_name="run")
def main(cfg: DictConfig) -> None:
    say_why()
    if "search" not in cfg:
        there = sorted(path.stem for path in (Path(__file__).parents[1] / "conf/search").iterdir())
        sys.exit(f"error: add +search=, one of {there}")
    if not OmegaConf.is_missing(cfg, "name"):
        sys.exit(f"error: name={cfg.name} is given; the runs of a search are named after study=")
    folder = Path(cfg.paths.runs).expanduser() / "studies" / cfg.study
    worker = Worker.this()
    try:
        search = open_search(cfg, folder)
    except SearchError as error:
        sys.exit(f"error: {error}")
    failed = 0
    while (trial := search.propose(worker)) is not None:
        failed += not _run(cfg, folder, search, trial, worker)
    best = search.best()
    if best is None:
        sys.exit(f"error: no trial of {folder} is finished; {folder / 'status'} says why")
    write_json(
        folder / "best.json",
        {"run": best.name, "settings": dict(best.settings), cfg.search.metric: best.value},
    )
    print(
        f"best of {best.finished} trials: {best.name}, {cfg.search.metric} {best.value:.4f} with "
        f"{dict(best.settings)}; {best.failed} failed, {best.running} still run elsewhere"
    )
    print(json.dumps({"folder": str(folder), "failed_here": failed}))


def open_search(cfg: DictConfig, folder: Path) -> Search:
    """The study of a configuration, begun or taken up again."""
    config = flat(OmegaConf.to_container(cfg, resolve=False))
    shared = {key: value for key, value in config.items() if not key.startswith(UNSHARED)}
    settings = OmegaConf.to_container(cfg.search, resolve=True)
    return Search(
        folder,
        {key: instantiate(one) for key, one in settings["space"].items()},
        shared,
        trials=settings["trials"],
        direction=settings["direction"],
        seed=settings["seed"],
        make_sampler=instantiate(settings["sampler"]),
    )


def _run(cfg: DictConfig, folder: Path, search: Search, trial: Proposal, worker: Worker) -> bool:
    """Whether the trial got a value."""
    chosen = [f"{key}={value}" for key, value in trial.settings.items()]
    print(f"trial {trial.number} ({trial.name}): {', '.join(chosen)}", flush=True)
    overrides = [*HydraConfig.get().overrides.task, *chosen, f"name={trial.name}"]
    result = folder.parent.parent / "answer" / trial.name / "metrics.json"
    try:
        status = run_job(folder, trial.name, RUN, overrides, result, worker)
    except JobStopped as error:
        print(error, flush=True)
        sys.exit(STOPPED)
    value = None
    if status.state == "finished":
        value = json.loads(result.read_text("utf-8")).get(cfg.search.metric)
        if value is None:
            print(f"{result} has no {cfg.search.metric}; the trial counts as failed", flush=True)
    if not search.tell(trial, value):
        print(f"{trial.name} was given to another process meanwhile", flush=True)
    print(f"{trial.name} {status.told()}; {cfg.search.metric}: {value}", flush=True)
    return value is not None


if __name__ == "__main__":
    main()
