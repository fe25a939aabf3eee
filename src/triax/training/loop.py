"""The one loop: steps, validations, checkpoints, in an order that a resumed run repeats exactly."""

import logging
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import numpy as np
from flax import nnx
from jax.sharding import Mesh

from triax.models.compile_cache import use_compile_cache
from triax.models.memory import report
from triax.models.model_memory import training_memory
from triax.tracking.tracker import Tracker
from triax.training.checkpoints import Checkpoints
from triax.training.optimizer import OptimizerFactory
from triax.training.processes import any_process, meet, of_first, own_part
from triax.training.step import data_mesh, make_step, place_batch, place_weights
from triax.training.task import Task

_log = logging.getLogger(__name__)


class TrainingError(RuntimeError):
    """Training cannot go on; the message says at which step and why."""


class TrainingStopped(RuntimeError):
    """Training was asked to end early; what was done is in a checkpoint. `done` counts steps."""

    def __init__(self, done: int, steps: int) -> None:
        super().__init__(f"stopped after step {done} of {steps}; the same call goes on from there")
        self.done = done


@dataclass(frozen=True, slots=True)
class Schedule:
    """When things happen, in steps. `patience` is in validations without a better objective."""

    steps: int
    eval_every: int
    checkpoint_every: int
    log_every: int = 10
    accumulate: int = 1
    patience: int | None = None

    def __post_init__(self) -> None:
        for name in ("steps", "eval_every", "checkpoint_every", "log_every", "accumulate"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} is {getattr(self, name)}, expected 1 or more")


@dataclass(frozen=True, slots=True)
class Result:
    """How a run ended: the figures of its best validation, and where its weights are.

    `seconds` and `tokens_per_s` are of this process only, not of those before a resume.
    """

    metrics: dict[str, float]
    best_step: int
    steps: int
    folder: Path
    seconds: float
    stopped_early: bool


def fit(
    task: Task,
    optimizer: OptimizerFactory,
    folder: Path,
    tracker: Tracker,
    schedule: Schedule,
    seed: int = 0,
    mesh: Mesh | None = None,
    progress: Callable[[int], None] | None = None,
    stop: Callable[[], bool] | None = None,
) -> Result:
    """Trains a task, or takes up its run in `folder` where it was left.

    Each step's batch and random key are functions of (seed, step), and a checkpoint holds all
    else, so a run that is killed and taken up again ends in the same bits as an unbroken one on
    the same machine. The weights of the best validation are saved in `folder/weights`.
    Where several processes train together (see `triax.training.processes`) each of them calls this;
    the first one writes the weights.

    Args:
        task: what is learnt.
        optimizer: gets the number of steps.
        folder: checkpoints and weights go there.
        tracker: gets losses and figures.
        schedule: when to validate, to write, to stop.
        seed: of the fresh weights, the order of lessons and whatever is random in a step.
        mesh: the devices that share each batch; all of them where none is given.
        progress: is called with the steps done.
        stop: is asked after each step, by several processes when a step is logged, whether to end.

    Raises:
        TrainingError: the loss is no finite number.
        TrainingStopped: `stop` said so; there is a checkpoint.
    """
    use_compile_cache()
    started = time.monotonic()
    mesh = data_mesh() if mesh is None else mesh
    model = task.build(seed)
    graph, trainable, frozen = nnx.split(model, task.trainable, ...)
    transform = optimizer(schedule.steps)
    trainable, moments, frozen = _on_devices(model, trainable, transform, frozen, mesh)
    held = _at_first(trainable, moments)
    step_fn = make_step(task, graph, transform, schedule.accumulate)
    root = jax.random.key(seed)
    with Checkpoints(folder / "checkpoints") as checkpoints:
        held = _taken_up(checkpoints, held, schedule)
        first = int(held["done"])
        tracker.resume(first)
        stopped = _is_over(held, schedule)
        for step in range(first, schedule.steps):
            if stopped:
                break
            batch = place_batch(task.batch(step, seed), mesh)
            trainable, moments, metrics = step_fn(
                held["trainable"], held["moments"], frozen, batch, jax.random.fold_in(root, step)
            )
            done = step + 1
            held |= {"trainable": trainable, "moments": moments, "done": np.int64(done)}
            if done % schedule.log_every == 0 or done == schedule.steps:
                _log_step(tracker, metrics, done, time.monotonic() - started, done - first)
            if done % schedule.eval_every == 0 or done == schedule.steps:
                _figures(metrics, done)
                held |= _validate(task, graph, held, own_part(frozen, mesh), tracker, mesh)
                stopped = _is_over(held, schedule)
            asked = not stopped and done < schedule.steps and _is_asked(stop, schedule, done)
            if done % schedule.checkpoint_every == 0 or done == schedule.steps or stopped or asked:
                _figures(metrics, done)
                checkpoints.save(done, held)
            if progress is not None:
                progress(done)
            if asked:
                raise TrainingStopped(done, schedule.steps)
    best = nnx.merge(graph, *own_part((held["best"], frozen), mesh))
    best_step, done = int(held["best_step"]), int(held["done"])
    figures = _keep_best(task, best, folder / "weights", tracker, best_step)
    seconds, is_early = time.monotonic() - started, done < schedule.steps
    return Result(figures, best_step, done, folder / "weights", seconds, is_early)


def _on_devices(
    model: nnx.Module, trainable: Any, transform: Any, frozen: Any, mesh: Mesh
) -> tuple[Any, Any, Any]:
    """Trained weights, moments and frozen weights where they are to lie; says what that takes."""
    parts = trainable, transform.init(trainable), frozen
    report("training", training_memory(*parts, model, mesh), mesh)
    first, second, third = (place_weights(tree, model, mesh) for tree in parts)
    return first, second, third


def _taken_up(checkpoints: Checkpoints, held: dict[str, Any], schedule: Schedule) -> dict[str, Any]:
    """What the newest checkpoint holds, or what is held at first."""
    if checkpoints.latest is None:
        return held
    held = checkpoints.restore(held)
    _log.info("taken up after step %d of %d", int(held["done"]), schedule.steps)
    return held


def _at_first(trainable: Any, moments: Any) -> dict[str, Any]:
    """All that a checkpoint holds, before the first step."""
    return {
        "trainable": trainable,
        "moments": moments,
        "best": _copy(trainable),  # the step gives its inputs' memory away
        "best_score": np.float64(-math.inf),
        "best_step": np.int64(0),
        "done": np.int64(0),
        "worse": np.int64(0),
    }


def _keep_best(
    task: Task, model: nnx.Module, folder: Path, tracker: Tracker, step: int
) -> dict[str, float]:
    """Saves the weights of the best validation; their figures."""
    if jax.process_index() == 0:
        task.save(model, folder)
    figures = of_first(task.validate(model))
    meet("the weights are saved")
    tracker.summary(figures | {"best_step": float(step)})
    return figures


def _is_asked(stop: Callable[[], bool] | None, schedule: Schedule, done: int) -> bool:
    """Whether to end here; several processes ask each other, which costs time, now and then."""
    if stop is None:
        return False
    if jax.process_count() == 1:
        return stop()
    return done % schedule.log_every == 0 and any_process(stop())


def _validate(
    task: Task, graph: Any, held: dict[str, Any], frozen: Any, tracker: Tracker, mesh: Mesh
) -> dict[str, Any]:
    """Figures at this step; what of `held` they change. Each process validates by itself."""
    done = int(held["done"])
    trainable = own_part(held["trainable"], mesh)
    figures = of_first(task.validate(nnx.merge(graph, trainable, frozen)))
    tracker.log({f"dev/{name}": value for name, value in figures.items()}, done)
    score = figures[task.objective]
    if not score > float(held["best_score"]):
        return {"worse": held["worse"] + 1}
    return {
        "best": _copy(held["trainable"]),
        "best_score": np.float64(score),
        "best_step": np.int64(done),
        "worse": np.int64(0),
    }


def _copy(tree: Any) -> Any:
    return jax.tree.map(lambda x: x.copy(), tree)


def _is_over(held: dict[str, Any], schedule: Schedule) -> bool:
    return schedule.patience is not None and int(held["worse"]) >= schedule.patience


def _figures(metrics: Any, done: int) -> dict[str, float]:
    """The figures of a step as numbers; what is no number must reach no checkpoint."""
    figures = {name: float(value) for name, value in metrics.items()}
    for name in ("loss", "grad_norm"):
        if not math.isfinite(figures[name]):
            raise TrainingError(
                f"{name} is {figures[name]} at step {done}; lower the learning rate, or look at "
                "the lessons of that step (task.batch). The last checkpoint is kept"
            )
    return figures


def _log_step(tracker: Tracker, metrics: Any, done: int, seconds: float, made: int) -> None:
    shown = {f"train/{name}": value for name, value in _figures(metrics, done).items()}
    tracker.log(shown | {"train/steps_per_s": made / max(seconds, 1e-9)}, done)
