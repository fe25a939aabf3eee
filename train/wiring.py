"""From a configuration to a finished training run: its folder, its weights and their card."""

import json
import shlex
import sys
from pathlib import Path

import jax
from hydra.core.hydra_config import HydraConfig
from hydra.utils import instantiate
from omegaconf import DictConfig, OmegaConf

from triax.models.adapters import CONFIG_FILE
from triax.runs.folder import RunFolderError, claim
from triax.runs.manifest import describe_environment
from triax.tracking.progress import track
from triax.training.card import CardFacts, data_of, scores_of, write_card
from triax.training.loop import Result, TrainingError, fit
from triax.training.task import Task

# What may differ between two calls of one run without changing its weights.
IGNORED = ("card", "paths", "schedule.checkpoint_every", "schedule.log_every", "tracker")
# Facts of `Task.describe` that have a place of their own in the card.
PLACED = ("base", "data", "datasets", "figure_counts", "lessons", "scored_on")


def train(cfg: DictConfig, program: str) -> float:
    """Trains, or takes up, the run `cfg.name`; prints one JSON line; returns the objective."""
    config = OmegaConf.to_container(cfg, resolve=True, throw_on_missing=True)
    name = str(cfg.name)  # a name may look like a number
    try:
        run = claim(Path(cfg.paths.runs).expanduser() / "train" / program / name, config, IGNORED)
    except RunFolderError as error:
        sys.exit(f"error: {error}")
    task = instantiate(cfg.task, _convert_="all")
    schedule = instantiate(cfg.schedule)
    tracker = instantiate(cfg.tracker)(folder=run.path, name=name, config=config)
    try:
        with track("train", schedule.steps) as progress:
            result = fit(
                task,
                instantiate(cfg.optimizer),
                run.path,
                tracker,
                schedule,
                cfg.seed,
                progress=progress,
            )
    except TrainingError as error:
        sys.exit(f"error: {error}")
    finally:
        tracker.finish()
    write_card(result.folder, _facts(cfg, config, program, task, result))
    figures = {"weights": str(result.folder), "steps": result.steps, "best_step": result.best_step}
    ended = {"stopped_early": result.stopped_early, "seconds": round(result.seconds, 1)}
    print(json.dumps(figures | ended | result.metrics))
    return result.metrics[task.objective]


def _facts(cfg: DictConfig, config: dict, program: str, task: Task, result: Result) -> CardFacts:
    described = task.describe()
    adapter = json.loads((result.folder / CONFIG_FILE).read_text("utf-8"))
    given = [word for word in HydraConfig.get().overrides.task if not word.startswith("paths.")]
    hidden = ("card", "hydra", "paths", "tracker")
    return CardFacts(
        name=f"triax {task.name}: {cfg.name}",
        task=task.name,
        base=str(described.get("base", adapter.get("base", "none"))),
        command=shlex.join(["python", f"train/{program}.py", *given]),
        config={key: value for key, value in config.items() if key not in hidden},
        data=data_of(described),
        scores=scores_of(result.metrics, described.get("figure_counts", {})),
        steps=result.steps,
        best_step=result.best_step,
        seed=cfg.seed,
        environment=describe_environment()
        | {"devices": f"{jax.device_count()} x {jax.devices()[0].device_kind}"},
        license=cfg.card.license,
        tags=list(cfg.card.tags),
        limits=list(cfg.card.limits),
        other={key: value for key, value in described.items() if key not in PLACED},
        **{key: described[key] for key in ("scored_on",) if key in described},
    )
