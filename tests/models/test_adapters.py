import json

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from flax import nnx
from safetensors.numpy import load_file, save_file

from triax.models import adapters
from triax.models.adapters import (
    AdapterError,
    adapter_folder,
    add_lora,
    count_parameters,
    load_adapter,
    merge_lora,
    read_config,
    save_adapter,
)

WIDTH, RANK = 5, 2
TRAINABLE = nnx.Any(nnx.LoRAParam, nnx.PathContains("head"))


class Block(nnx.Module):
    def __init__(self, rngs):
        self.query = nnx.Linear(WIDTH, WIDTH, rngs=rngs)
        self.other = nnx.Linear(WIDTH, WIDTH, rngs=rngs)

    def __call__(self, x):
        return jnp.tanh(self.other(jnp.tanh(self.query(x))))


class Net(nnx.Module):
    def __init__(self, rngs):
        self.blocks = nnx.List([Block(rngs), Block(rngs)])
        self.head = nnx.Linear(WIDTH, 3, rngs=rngs)

    def __call__(self, x):
        for block in self.blocks:
            x = block(x)
        return self.head(x)


def build(rank=RANK, seed=1):
    model = Net(nnx.Rngs(0))
    add_lora(model, rank, nnx.Rngs(seed), ("query",))
    return model


def shake(model):
    """Trained-looking values: B is no longer 0."""
    state = nnx.state(model, nnx.LoRAParam)
    rng = np.random.default_rng(0)
    for _, variable in nnx.to_flat_state(state):
        variable[...] = jnp.asarray(rng.normal(size=variable.shape), jnp.float32)
    nnx.update(model, state)
    return model


@pytest.fixture(name="x")
def fixture_x():
    return jnp.asarray(np.random.default_rng(1).normal(size=(4, WIDTH)), jnp.float32)


def test_at_first_nothing_changes(x):
    assert np.array_equal(build()(x), Net(nnx.Rngs(0))(x))


def test_a_layer_is_the_formula_of_the_paper(x):
    """h = x W + b + x A B (Hu et al. 2022, section 4.1; peft's with lora_alpha = r), in numpy."""
    block = shake(build()).blocks[1]
    layer = block.query
    w, b = np.asarray(layer.base_module.kernel[...]), np.asarray(layer.base_module.bias[...])
    a, low = np.asarray(layer.lora_a[...]), np.asarray(layer.lora_b[...])
    assert a.shape == (WIDTH, RANK) and low.shape == (RANK, WIDTH)
    expected = np.asarray(x) @ w + b + np.asarray(x) @ a @ low
    assert np.allclose(layer(x), expected, rtol=1e-5, atol=1e-6)


def test_slopes_are_those_of_torch():
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(3)
    x, slope = rng.normal(size=(4, 3, WIDTH)), rng.normal(size=(4, 3, 7))
    base = nnx.Linear(WIDTH, 7, rngs=nnx.Rngs(0))
    layer = adapters.LowRankAdapted(WIDTH, RANK, 7, base_module=base, rngs=nnx.Rngs(1))
    layer.lora_b[...] = jnp.asarray(rng.normal(size=(RANK, 7)), jnp.float32)

    def outcome(layer, x):
        return (layer(x) * jnp.asarray(slope, jnp.float32)).sum()

    found, found_x = nnx.grad(outcome, argnums=(nnx.DiffState(0, nnx.Param), 1))(
        layer, jnp.asarray(x, jnp.float32)
    )
    values = (x, layer.lora_a[...], layer.lora_b[...], base.kernel[...], base.bias[...])
    theirs = [torch.tensor(np.asarray(one, np.float64), requires_grad=True) for one in values]
    inputs, a, b, kernel, bias = theirs
    ((inputs @ kernel + bias + inputs @ a @ b) * torch.tensor(slope)).sum().backward()
    ours = (
        found_x,
        found["lora_a"][...],
        found["lora_b"][...],
        found["base_module"]["kernel"][...],
        found["base_module"]["bias"][...],
    )
    for one, wanted in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(one, wanted.grad.numpy(), rtol=1e-4, atol=1e-5)


def test_merging_gives_the_same_function_and_plain_layers(x):
    model = shake(build())
    before = model(x)
    assert not np.allclose(before, Net(nnx.Rngs(0))(x), atol=1e-2)
    assert merge_lora(model) == 2
    assert np.allclose(model(x), before, rtol=1e-5, atol=1e-6)
    assert type(model.blocks[0].query) is nnx.Linear
    assert jax.tree.structure(nnx.state(model)) == jax.tree.structure(nnx.state(Net(nnx.Rngs(0))))
    assert merge_lora(model) == 0


def test_training_leaves_the_base_as_it_was(x):
    model = build()
    graph, trained, frozen = nnx.split(model, TRAINABLE, ...)
    adam = optax.adam(0.1)
    moments = adam.init(trained)
    start = jax.tree.map(np.asarray, trained)

    def loss(trained):
        return jnp.mean(jnp.square(nnx.merge(graph, trained, frozen)(x) - 1.0))

    losses = []
    for _ in range(5):
        value, grads = jax.value_and_grad(loss)(trained)
        updates, moments = adam.update(grads, moments, trained)
        trained = optax.apply_updates(trained, updates)
        losses.append(float(value))
    assert losses[-1] < losses[0] / 2
    nnx.update(model, trained)
    fresh = Net(nnx.Rngs(0))
    for block, old in zip(model.blocks, fresh.blocks):
        assert np.array_equal(block.query.base_module.kernel[...], old.query.kernel[...])
        assert np.array_equal(block.other.kernel[...], old.other.kernel[...])
    assert all(
        not np.array_equal(a, b) for a, b in zip(jax.tree.leaves(start), jax.tree.leaves(trained))
    )


def test_only_named_layers_are_adapted_and_counted():
    model = Net(nnx.Rngs(0))
    assert add_lora(model, 3, nnx.Rngs(0), ("query", "other")) == 4
    assert isinstance(model.blocks[0].other, nnx.LoRA)
    assert type(model.head) is nnx.Linear
    # Each: 5 x 3 + 3 x 5; the head 5 x 3 + 3.
    assert count_parameters(model, nnx.LoRAParam) == 4 * 30
    assert count_parameters(model, nnx.Any(nnx.LoRAParam, nnx.PathContains("head"))) == 138


def test_the_seed_makes_the_fresh_weights():
    one, same, other = build(), build(), build(seed=2)
    first = one.blocks[0].query.lora_a[...]
    assert np.array_equal(first, same.blocks[0].query.lora_a[...])
    assert not np.array_equal(first, other.blocks[0].query.lora_a[...])
    assert not np.array_equal(first, one.blocks[1].query.lora_a[...])


def test_what_cannot_be_adapted_is_named():
    with pytest.raises(AdapterError, match=r"no linear layer .* named one of \['key', 'value'\]"):
        add_lora(Net(nnx.Rngs(0)), 2, nnx.Rngs(0), ("key", "value"))
    with pytest.raises(AdapterError, match="rank of an adapter is 0, expected 1 or more"):
        add_lora(Net(nnx.Rngs(0)), 0, nnx.Rngs(0), ("query",))


def test_files_hold_what_was_trained_in_half_precision(tmp_path, x):
    model = shake(build())
    folder = save_adapter(tmp_path / "new" / "one", model, TRAINABLE, {"part": "toy", "rank": RANK})
    tensors = load_file(folder / "adapter.safetensors")
    assert set(tensors) == {
        "blocks.0.query.lora_a",
        "blocks.0.query.lora_b",
        "blocks.1.query.lora_a",
        "blocks.1.query.lora_b",
        "head.bias",
        "head.kernel",
    }
    assert {value.dtype for value in tensors.values()} == {np.dtype(np.float16)}
    assert json.loads((folder / "config.json").read_text()) == {"part": "toy", "rank": RANK}
    assert sorted(path.name for path in folder.iterdir()) == ["adapter.safetensors", "config.json"]
    other = build(seed=5)
    load_adapter(folder, other, TRAINABLE)
    assert np.allclose(other(x), model(x), rtol=0, atol=5e-3)
    kernel = np.asarray(model.head.kernel[...])
    assert np.array_equal(other.head.kernel[...], kernel.astype(np.float16).astype(np.float32))
    assert other.head.kernel[...].dtype == jnp.float32


def test_files_of_another_model_are_refused_and_change_nothing(tmp_path, x):
    save_adapter(tmp_path, shake(build()), TRAINABLE, {})
    model = build(rank=3)
    before = model(x)
    said = r"blocks\.0\.query\.lora_a in .* has shape \(5, 2\), the model has \(5, 3\)"
    with pytest.raises(AdapterError, match=said):
        load_adapter(tmp_path, model, TRAINABLE)
    assert np.array_equal(model(x), before)
    with pytest.raises(AdapterError, match=r"lacks \[\] and has \['head\.bias', 'head\.kernel'\]"):
        load_adapter(tmp_path, build(), nnx.LoRAParam)
    tensors = load_file(tmp_path / "adapter.safetensors")
    save_file({"head.bias": tensors["head.bias"]}, tmp_path / "adapter.safetensors")
    with pytest.raises(AdapterError, match=r"lacks \['blocks\.0\.query\.lora_a', .*5 and 0 in all"):
        load_adapter(tmp_path, build(), TRAINABLE)


def test_a_part_is_asked_for_by_name(tmp_path):
    save_adapter(tmp_path, build(), TRAINABLE, {"part": "resolve", "rank": 2})
    assert read_config(tmp_path, "resolve")["rank"] == 2
    with pytest.raises(AdapterError, match="holds the part 'resolve', expected 'extract'"):
        read_config(tmp_path, "extract")


def test_a_name_becomes_a_folder(tmp_path, monkeypatch):
    monkeypatch.setattr(adapters, "SHIPPED", tmp_path / "shipped")
    monkeypatch.setattr(adapters.weights, "locate", lambda name: tmp_path / "hub" / name)
    monkeypatch.chdir(tmp_path)
    for name in ("shipped/solver", "mine/one"):
        save_adapter(tmp_path / name, build(), TRAINABLE, {})
    assert adapter_folder("solver") == tmp_path / "shipped" / "solver"
    assert adapter_folder(str(tmp_path / "mine" / "one")) == tmp_path / "mine" / "one"
    assert adapter_folder("mine/one").resolve() == tmp_path / "mine" / "one"
    assert adapter_folder("someone/theirs") == tmp_path / "hub" / "someone" / "theirs"
    with pytest.raises(AdapterError, match=r"no adapter 'other': .*shipped one \['solver'\]"):
        adapter_folder("other")
    with pytest.raises(AdapterError, match="nor a folder with adapter.safetensors"):
        adapter_folder("mine/")
