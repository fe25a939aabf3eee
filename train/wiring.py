"""From a configuration to a finished training run: its folder, its weights and their card."""

import json
import logging
import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import jax
from hydra.core.hydra_config import HydraConfig
from hydra.utils import instantiate
from omegaconf import DictConfig, OmegaConf

from triax.models.adapters import CONFIG_FILE, fingerprint
from triax.models.mesh import MeshError, use_mesh
from triax.runs.folder import RunFolderError, claim
from triax.runs.manifest import describe_environment
from triax.tracking.progress import track
from triax.tracking.tracker import Artifact, Tracker
from triax.training.card import CardFacts, data_of, scores_of, write_card
from triax.training.loop import Result, Schedule, TrainingError, TrainingStopped, fit
from triax.training.processes import Processes, join
from triax.training.stopping import StopRequest
from triax.training.task import Task

# What may differ between two calls of one run without changing its weights.
IGNORED = (
    "card",
    "mesh",
    "paths",
    "processes",
    "schedule.checkpoint_every",
    "schedule.log_every",
    "study",
    "tracker",
)
# The exit code of a training that was asked to end early: "try again" (sysexits.h).
AGAIN = 75
# Facts of `Task.describe` that have a place of their own in the card.
PLACED = ("base", "data", "datasets", "figure_counts", "inputs", "lessons", "scored_on")


def train(cfg: DictConfig, program: str) -> float:
    """Trains, or takes up, the run `cfg.name`; prints one JSON line; returns the objective."""
    config = OmegaConf.to_container(cfg, resolve=True, throw_on_missing=True)
    name = str(cfg.name)  # a name may look like a number
    folder = Path(cfg.paths.runs).expanduser() / "train" / program / name
    try:
        processes: Processes = instantiate(cfg.processes)
        if processes.is_first:
            claim(folder, config, IGNORED)
        join(processes)
        use_mesh(**{key: cfg.mesh[key] for key in ("data", "model")})
    except (MeshError, RunFolderError) as error:
        sys.exit(f"error: {error}")
    task = instantiate(cfg.task, _convert_="all")
    schedule = instantiate(cfg.schedule)
    with _tracked(cfg, config, program, task, folder, processes) as tracker:
        result = _fit(cfg, task, schedule, folder, tracker)
        if processes.is_first:
            write_card(result.folder, _facts(cfg, config, program, task, result))
            tracker.artifact(_weights(task, result))
    if processes.is_first:
        ended = {"stopped_early": result.stopped_early, "seconds": round(result.seconds, 1)}
        told = {"weights": str(result.folder), "steps": result.steps}
        print(json.dumps(told | {"best_step": result.best_step} | ended | result.metrics))
    return result.metrics[task.objective]


@contextmanager
def _tracked(
    cfg: DictConfig,
    config: dict,
    program: str,
    task: Task,
    folder: Path,
    processes: Processes,
) -> Iterator[Tracker]:
    """The tracker of the run, of the first process alone; other faults than a stop fail it."""
    if not processes.is_first:
        logging.getLogger("triax").setLevel(logging.WARNING)  # one log is enough
    tracker = instantiate(cfg.tracker)(
        folder=folder,
        name=str(cfg.name),
        config=config | {"environment": describe_environment()},
        study=cfg.study,
        job_type=f"train_{program}",
        tags=[f"task:{task.name}"],
        process_index=processes.index,
    )
    failed = True
    try:
        yield tracker
        failed = False
    except TrainingStopped as stopped:
        failed = False
        print(
            json.dumps({"stopped_at": stopped.done, "steps": cfg.schedule.steps}), file=sys.stderr
        )
        sys.exit(AGAIN)
    except TrainingError as error:
        sys.exit(f"error: {error}")
    finally:
        tracker.finish(failed=failed)


def _fit(cfg: DictConfig, task: Task, schedule: Schedule, folder: Path, tracker: Tracker) -> Result:
    optimizer = instantiate(cfg.optimizer)
    with track("train", schedule.steps) as progress, StopRequest() as stop:
        return fit(
            task, optimizer, folder, tracker, schedule, cfg.seed, progress=progress, stop=stop
        )


def _weights(task: Task, result: Result) -> Artifact:
    """The weights for a lineage, by the name that extract and answer give to what they use."""
    digest = fingerprint(str(result.folder))
    counts, inputs = {"steps": result.steps}, task.describe().get("inputs", {})
    name = f"weights-{digest[:12]}"
    return Artifact(name, "weights", digest, result.folder, counts=counts, inputs=inputs)


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
