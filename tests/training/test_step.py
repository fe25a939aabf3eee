import json
import os
import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from flax import nnx

from triax.training.step import data_mesh, make_step, place_batch, replicate
from triax.training.task import Loss

sys.path.insert(0, str(Path(__file__).parent))

import toy
from toy import ToyTask, train, weights


class Slope(nnx.Module):
    def __init__(self):
        self.slope = nnx.Param(jnp.array([2.0]))
        self.offset = nnx.BatchStat(jnp.array([1.0]))


class SlopeTask(ToyTask):
    trainable = nnx.Param

    def loss(self, model, batch, key):
        errors = jnp.square(model.slope[...] * batch["x"] + model.offset[...] - batch["y"])
        return Loss(
            jnp.sum(batch["weight"] * errors),
            jnp.sum(batch["weight"]),
            {"y": jnp.sum(batch["weight"] * batch["y"])},
        )


def test_a_step_by_hand():
    """loss = (1 (2+1-0)^2 + 3 (4+1-4)^2) / 4 = 3; d/dslope = (1*2*3*1 + 3*2*1*2) / 4 = 4.5."""
    graph, trainable, frozen = nnx.split(Slope(), nnx.Param, ...)
    sgd = optax.sgd(0.1)
    batch = {"x": jnp.array([1.0, 2.0]), "y": jnp.array([0.0, 4.0])}
    batch["weight"] = jnp.array([1.0, 3.0])
    step = make_step(SlopeTask(), graph, sgd, 1)
    trainable, _, metrics = step(trainable, sgd.init(trainable), frozen, batch, jax.random.key(0))
    assert np.allclose(trainable["slope"][...], 2.0 - 0.45, rtol=1e-6)
    assert {name: float(value) for name, value in metrics.items()} == pytest.approx(
        {"loss": 3.0, "grad_norm": 4.5, "y": 3.0}
    )
    assert float(frozen["offset"][...][0]) == 1.0


def test_rows_without_weight_change_nothing():
    graph, trainable, frozen = nnx.split(Slope(), nnx.Param, ...)
    sgd = optax.sgd(0.1)
    batch = {name: jnp.zeros(2) for name in ("x", "y", "weight")}
    step = make_step(SlopeTask(), graph, sgd, 2)
    trainable, _, metrics = step(trainable, sgd.init(trainable), frozen, batch, jax.random.key(0))
    assert float(trainable["slope"][...][0]) == 2.0
    assert float(metrics["loss"]) == 0.0


def steps(accumulate, count=5):
    task = ToyTask(rows=32)
    graph, trainable, frozen = nnx.split(task.build(0), task.trainable, ...)
    transform = optax.adamw(0.02)
    moments = transform.init(trainable)
    step = make_step(task, graph, transform, accumulate)
    for number in range(count):
        batch = place_batch(task.batch(number, 0), data_mesh())
        trainable, moments, metrics = step(
            trainable, moments, frozen, batch, jax.random.key(number)
        )
    return jax.tree.leaves(trainable), metrics


def test_four_micro_batches_equal_one_batch():
    (whole, figures), (parts, summed) = steps(1), steps(4)
    for expected, found in zip(whole, parts, strict=True):
        assert np.allclose(found, expected, rtol=0, atol=1e-6)
    for name, value in figures.items():
        assert np.allclose(summed[name], value, rtol=1e-5), name


def test_eight_devices_equal_one(tmp_path):
    """Virtual devices, so in a process of its own; float32 sums in another order."""
    plan = {"steps": 12, "accumulate": 2}
    given = {"folder": str(tmp_path / "eight"), "task": {"rows": 32}, "plan": plan}
    flags = "--xla_force_host_platform_device_count=8"
    done = subprocess.run(
        [sys.executable, toy.__file__, json.dumps(given)],
        capture_output=True,
        text=True,
        timeout=300,
        env=os.environ | {"XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu"},
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert json.loads(done.stdout)["devices"] == 8
    train(tmp_path / "one", ToyTask(rows=32), mesh=data_mesh(jax.devices()[:1]), **plan)
    one, eight = weights(tmp_path / "one"), weights(tmp_path / "eight")
    assert one.keys() == eight.keys()
    fresh = nnx.to_flat_state(nnx.state(ToyTask().build(0), ToyTask.trainable))
    for path, value in fresh:
        name = ".".join(map(str, path))
        assert np.allclose(eight[name], one[name], rtol=0, atol=1e-5), name
        assert np.abs(one[name] - np.asarray(value[...])).max() > 1e-2, name


def test_rows_that_devices_cannot_share_are_named():
    three = data_mesh(jax.devices()[:1] * 3)
    with pytest.raises(ValueError, match="'x' has 4 rows, which 3 devices cannot share equally"):
        place_batch({"x": np.zeros(4)}, three)


def test_rows_that_micro_batches_cannot_share_are_named():
    graph, trainable, frozen = nnx.split(Slope(), nnx.Param, ...)
    batch = {name: jnp.zeros(4) for name in ("x", "y", "weight")}
    sgd = optax.sgd(0.1)
    step = make_step(SlopeTask(), graph, sgd, 3)
    with pytest.raises(ValueError, match="'weight' has 4 rows, which 3 micro-batches cannot share"):
        step(trainable, sgd.init(trainable), frozen, batch, jax.random.key(0))


def test_values_are_put_on_all_devices():
    mesh = data_mesh()
    placed = replicate({"x": jnp.arange(3)}, mesh)
    assert placed["x"].sharding.is_fully_replicated
    assert placed["x"].sharding.device_set == set(jax.devices())


# A decoder with adapters on two meshes: 12 steps at once on one device; on 2 x 4, taken up after 6.
SPLIT = """
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

from triax.models.adapters import DECODER_LAYERS, add_lora, save_adapter
from triax.models.decoder import Decoder, DecoderConfig
from triax.models.mesh import open_mesh
from triax.tracking.composite import CompositeTracker
from triax.training.loop import Schedule, fit
from triax.training.optimizer import adamw_linear
from triax.training.task import Loss

CONFIG = DecoderConfig.from_hf({"model_type": "llama", "vocab_size": 64, "hidden_size": 32,
    "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 8,
    "num_key_value_heads": 4, "rms_norm_eps": 1e-5, "tie_word_embeddings": False})
SHAPES = []

class Words:
    name, objective, trainable = "words", "score", nnx.LoRAParam
    def build(self, seed):
        model = nnx.jit(lambda: Decoder(CONFIG, rngs=nnx.Rngs(0)))()
        add_lora(model, 4, nnx.Rngs(seed), DECODER_LAYERS)
        return model
    def batch(self, step, seed):
        return {"ids": np.random.default_rng((seed, step)).integers(0, 64, (8, 12), np.int32)}
    def loss(self, model, batch, key):
        logits = model(batch["ids"], jnp.ones(batch["ids"].shape, bool))
        gold = jax.nn.one_hot(batch["ids"][:, 1:], 64)
        each = -(jax.nn.log_softmax(logits[:, :-1]) * gold).sum((1, 2))
        return Loss(each.sum(), jnp.float32(len(each) * 11), {})
    def validate(self, model):
        SHAPES.append(model.layers[0].mlp.gate_proj.base_module.kernel[...].addressable_shards[0].data.shape)
        return {"score": float(jnp.abs(model.layers[0].mlp.gate_proj.lora_b[...]).sum())}
    def save(self, model, folder):
        save_adapter(folder, model, self.trainable, {"part": "words", "rank": 4})
        np.savez(folder / "full.npz", **{str(n): np.asarray(leaf) for n, leaf in
                 enumerate(jax.tree.leaves(nnx.state(model, self.trainable)))})
    def describe(self):
        return {}

def run(folder, mesh, steps, stop=None):
    try:
        fit(Words(), lambda _: adamw_linear(12, learning_rate=0.01), Path(folder),
            CompositeTracker(()), Schedule(steps, 12, 6), mesh=mesh, stop=stop)
    except RuntimeError as error:
        assert "stopped after step 6" in str(error), error

run(sys.argv[1] + "/one", open_mesh(1, 1, jax.devices()[:1]), 12)
calls = iter(range(1, 99))
run(sys.argv[1] + "/split", open_mesh(2, 4), 12, lambda: next(calls) == 6)
run(sys.argv[1] + "/split", open_mesh(2, 4), 12)
print(SHAPES[0], SHAPES[-1])
"""


def test_a_decoder_that_is_split_learns_the_same(tmp_path):
    """Two shares of the rows by four of the weights; its checkpoint is split as well."""
    flags = "--xla_force_host_platform_device_count=8"
    done = subprocess.run(
        [sys.executable, "-c", SPLIT, str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=300,
        env=os.environ | {"XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu"},
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.split("\n")[0] == "(32, 48) (32, 12)"
    one, split = (
        dict(np.load(tmp_path / name / "weights" / "full.npz")) for name in ("one", "split")
    )
    assert one.keys() == split.keys() and len(one) == 28
    for name, value in one.items():
        assert np.allclose(split[name], value, rtol=0, atol=1e-5), name
        assert np.abs(value).max() > 1e-3
