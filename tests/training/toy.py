"""A task small enough to count by hand: two linear layers, the first adapted, on random numbers.

Run as a program it trains in a process of its own: with other devices, or one that is killed.
"""

import json
import os
import signal
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

from triax.models.adapters import add_lora, save_adapter
from triax.tracking.jsonl import JsonlTracker
from triax.training.loop import Schedule, fit
from triax.training.optimizer import adamw_linear
from triax.training.task import Loss

FEATURES, HIDDEN, RANK = 6, 8, 2
HELD_OUT = 10_000  # the batch that validation uses


class Net(nnx.Module):
    def __init__(self, rngs):
        self.query = nnx.Linear(FEATURES, HIDDEN, rngs=rngs)
        self.head = nnx.Linear(HIDDEN, 1, rngs=rngs)

    def __call__(self, x):
        return self.head(jnp.tanh(self.query(x)))[:, 0]


class ToyTask:
    name = "toy"
    objective = "score"
    trainable = nnx.Any(nnx.LoRAParam, nnx.PathContains("head"))

    def __init__(self, rows=16, noise=0.0, die_at=(), scores=None, nan_from=None):
        self.rows, self.noise, self.die_at, self.nan_from = rows, noise, die_at, nan_from
        self.scores = iter(scores) if scores is not None else None
        self.asked = []
        self.die = None  # an error to raise instead of a kill

    def build(self, seed):
        # The frozen weights come from a file elsewhere: they do not hang on the seed.
        model = Net(nnx.Rngs(123))
        add_lora(model, RANK, nnx.Rngs(seed), ("query",))
        model.head.kernel[...] = jax.random.normal(jax.random.key(seed), (HIDDEN, 1)) * 0.3
        return model

    def batch(self, step, seed):
        self.asked.append(step)
        if step in self.die_at:
            if self.die is not None:
                raise self.die(f"at step {step}")
            os.kill(os.getpid(), signal.SIGKILL)
        rng = np.random.default_rng((seed, step))
        x = rng.normal(size=(self.rows, FEATURES)).astype(np.float32)
        y = np.sin(x[:, 0]) + 0.5 * x[:, 1] * x[:, 2]
        if self.nan_from is not None and self.nan_from <= step < HELD_OUT:
            y = y * np.nan
        # Rows of unequal weight, some without any, as padding has.
        weight = rng.integers(0, 3, self.rows).astype(np.float32)
        return {"x": x, "y": y.astype(np.float32), "weight": weight}

    def loss(self, model, batch, key):
        noise = self.noise * jax.random.normal(key, batch["y"].shape)
        errors = jnp.square(model(batch["x"]) + noise - batch["y"])
        weight = batch["weight"]
        sums = {"far": jnp.sum(weight * (errors > 1))}
        return Loss(jnp.sum(weight * errors), jnp.sum(weight), sums)

    def validate(self, model):
        held = self.batch(HELD_OUT, 0)
        wrong = float(jnp.mean(jnp.square(model(jnp.asarray(held["x"])) - held["y"])))
        return {"score": next(self.scores) if self.scores is not None else -wrong}

    def save(self, model, folder):
        save_adapter(folder, model, self.trainable, {"part": "toy", "rank": RANK})
        full = nnx.to_flat_state(nnx.state(model, self.trainable))
        arrays = {".".join(map(str, path)): np.asarray(value[...]) for path, value in full}
        np.savez(folder / "full.npz", **arrays)

    def describe(self):
        return {"data": [{"name": "toy", "rows": self.rows, "licence": "CC0-1.0"}]}


def weights(folder):
    """Trained parameters, in full precision."""
    return dict(np.load(Path(folder) / "weights" / "full.npz"))


def optimizer(steps):
    return adamw_linear(steps, learning_rate=0.02)


def train(folder, task=None, steps=12, seed=0, tracker=None, mesh=None, stop=None, **schedule):
    plan = {"eval_every": 4, "checkpoint_every": 4, "log_every": 2} | schedule
    folder = Path(folder)
    return fit(
        task or ToyTask(),
        optimizer,
        folder,
        tracker or JsonlTracker(folder),
        Schedule(steps=steps, **plan),
        seed=seed,
        mesh=mesh,
        stop=stop,
    )


if __name__ == "__main__":
    given = json.loads(sys.argv[1])
    result = train(given["folder"], ToyTask(**given["task"]), **given["plan"])
    print(json.dumps({"devices": jax.device_count(), "steps": result.steps}))
