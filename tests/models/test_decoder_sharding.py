import json
import os
import re
import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from flax import nnx
from jax.sharding import AbstractMesh
from safetensors.numpy import save_file

from triax.models.adapters import DECODER_LAYERS, add_lora
from triax.models.decoder import Decoder, DecoderConfig
from triax.models.decoder_params import hf_name
from triax.models.decoder_sharding import (
    cache_sharding,
    check_split,
    mesh_of,
    place_state,
    state_shardings,
)
from triax.models.mesh import MeshError, open_mesh

LLAMA = {
    "model_type": "llama",
    "vocab_size": 264,
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 2,
    "num_attention_heads": 8,
    "num_key_value_heads": 4,
    "rms_norm_eps": 1e-5,
    "tie_word_embeddings": False,
}
CONFIG = DecoderConfig.from_hf(LLAMA)


def adapted():
    decoder = Decoder(CONFIG, rngs=nnx.Rngs(0))
    add_lora(decoder, 4, nnx.Rngs(1), DECODER_LAYERS)
    return decoder


def local_shapes(tree, size):
    """The share of one device, by the name of the weight."""
    mesh = AbstractMesh((8 // size, size), ("data", "model"))
    places = jax.tree.leaves(state_shardings(tree, CONFIG, mesh))
    flat = jax.tree_util.tree_flatten_with_path(tree)[0]
    return {
        re.sub(r"\W+", ".", jax.tree_util.keystr(path)).strip("."): place.shard_shape(leaf.shape)
        for (path, leaf), place in zip(flat, places, strict=True)
    }


def test_megatrons_split():
    _, adapters, base = nnx.split(nnx.eval_shape(adapted), nnx.LoRAParam, ...)
    shapes = local_shapes(base, 4) | local_shapes(adapters, 4)
    layer = "layers.0."
    assert shapes["embed_tokens.embedding.value"] == (66, 64)
    assert shapes["lm_head.kernel.value"] == (64, 66)
    assert shapes[f"{layer}self_attn.q_proj.base_module.kernel.value"] == (64, 16)
    assert shapes[f"{layer}self_attn.k_proj.base_module.kernel.value"] == (64, 8)
    assert shapes[f"{layer}self_attn.o_proj.base_module.kernel.value"] == (16, 64)
    assert shapes[f"{layer}mlp.up_proj.base_module.kernel.value"] == (64, 24)
    assert shapes[f"{layer}mlp.down_proj.base_module.kernel.value"] == (24, 64)
    assert shapes[f"{layer}input_layernorm.scale.value"] == (64,)
    assert shapes[f"{layer}mlp.up_proj.lora_a.value"] == (64, 4)
    assert shapes[f"{layer}mlp.up_proj.lora_b.value"] == (4, 24)
    assert shapes[f"{layer}mlp.down_proj.lora_a.value"] == (24, 4)
    assert shapes[f"{layer}mlp.down_proj.lora_b.value"] == (4, 64)


def test_fewer_key_value_heads_than_devices_are_on_each():
    shapes = local_shapes(nnx.state(nnx.eval_shape(adapted)), 8)
    assert shapes["layers.0.self_attn.k_proj.base_module.kernel.value"] == (64, 32)
    assert shapes["layers.0.self_attn.k_proj.lora_b.value"] == (4, 32)
    assert shapes["layers.0.self_attn.q_proj.base_module.kernel.value"] == (64, 8)
    mesh = AbstractMesh((2, 4), ("data", "model"))
    assert cache_sharding(CONFIG, mesh, 8).shard_shape((8, 512, 4, 8)) == (4, 512, 1, 8)
    assert cache_sharding(CONFIG, mesh, 1).shard_shape((1, 512, 4, 8)) == (1, 512, 1, 8)
    mesh = AbstractMesh((1, 8), ("data", "model"))
    assert cache_sharding(CONFIG, mesh, 8).shard_shape((8, 512, 4, 8)) == (8, 512, 4, 8)


def test_moments_lie_beside_their_weights():
    _, adapters, _ = nnx.split(nnx.eval_shape(adapted), nnx.LoRAParam, ...)
    shapes = local_shapes(jax.eval_shape(optax.adamw(1e-3).init, adapters), 4)
    assert shapes["0.mu.layers.1.mlp.gate_proj.lora_b.value"] == (4, 24)
    assert shapes["0.nu.layers.1.mlp.gate_proj.lora_b.value"] == (4, 24)
    assert shapes["0.count"] == ()


def test_heads_that_cannot_be_shared_are_refused():
    with pytest.raises(MeshError, match=r"mesh.model=3 cannot share the decoder's 8 attention.*4"):
        check_split(CONFIG, AbstractMesh((1, 3), ("data", "model")))


def test_a_model_that_is_no_decoder_lies_whole_and_one_device_is_no_mesh():
    model = nnx.Linear(4, 8, rngs=nnx.Rngs(0))
    state = place_state(nnx.state(model), model, open_mesh(devices=jax.devices()[:1]))
    assert state["kernel"].get_value().sharding.is_fully_replicated
    assert mesh_of(state) is None and mesh_of({"x": np.zeros(1), "y": jnp.zeros(1)}) is None


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("llama")
    (folder / "config.json").write_text(json.dumps(LLAMA))
    rng, tensors = np.random.default_rng(0), {}
    shapes = nnx.eval_shape(lambda: Decoder(CONFIG, rngs=nnx.Rngs(0)))
    for path, variable in nnx.to_flat_state(nnx.state(shapes)):
        value = rng.standard_normal(variable.shape).astype(np.float32) * 0.1
        value = 1 + value if path[-1] == "scale" else value
        tensors[hf_name(path)] = np.ascontiguousarray(value.T if path[-1] == "kernel" else value)
    save_file(tensors, folder / "model.safetensors")
    return folder


CHILD = """
import sys
from functools import partial
from pathlib import Path
import jax, jax.numpy as jnp, numpy as np
from flax import nnx
from triax.models import decoder_params
from triax.models.adapters import DECODER_LAYERS, add_lora, merge_lora
from triax.models.decoder_params import load_decoder
from triax.models.decoder_sharding import mesh_of, place_state, row_sharding
from triax.models.decoding import read_piece, write
from triax.models.generate import Generator, Prompt
from triax.models.mesh import open_mesh
from triax.models.model_memory import generation_memory
from triax.training.tasks.write import token_losses

folder = Path(sys.argv[1])
plain, config = load_decoder(folder)
rng = np.random.default_rng(1)
draw = lambda *shape: rng.integers(1, 260, shape).astype(np.int32)
ids, mask = draw(8, 12), np.ones((8, 12), bool)
start = tuple(draw(70).tolist())
prompts = [Prompt(start + tuple(draw(n).tolist()), 4) for n in range(1, 6)]
graph, state = nnx.split(plain)
logits = jax.jit(lambda state, ids, mask: nnx.merge(graph, state)(ids, mask))
wanted, written = np.asarray(logits(state, ids, mask)), Generator(plain, [263]).generate(prompts)
weights = np.ones((8, 3), np.float32)
batch = {"ids": ids, "mask": mask, "places": draw(8, 3) % 12, "targets": draw(8, 3)}


def gradient(decoder, mesh=None):
    add_lora(decoder, 2, nnx.Rngs(0), DECODER_LAYERS)
    graph, trained, frozen = nnx.split(decoder, nnx.LoRAParam, ...)
    # Both factors away from 0, so that each has a slope.
    noise = np.random.default_rng(2)
    trained = jax.tree.map(lambda x: x + 0.1 * noise.standard_normal(x.shape, "f"), trained)
    rows = batch
    if mesh is not None:
        trained, frozen = (place_state(part, decoder, mesh) for part in (trained, frozen))
        rows = jax.device_put(batch, row_sharding(mesh, 8))
        split = trained["layers"][0]["mlp"]["up_proj"]["lora_b"].get_value()
        assert split.addressable_shards[0].data.shape == (2, 24), split.sharding
    def loss(trained, frozen, rows):
        return token_losses(nnx.merge(graph, trained, frozen), rows, True)[1].mean()
    found, slopes = jax.jit(jax.value_and_grad(loss))(trained, frozen, rows)
    merged = nnx.merge(graph, trained, frozen)
    merge_lora(merged)
    kernel = merged.layers[0].mlp.up_proj.kernel[...]
    shape = (64, 96) if mesh is None else (64, 24)
    assert kernel.addressable_shards[0].data.shape == shape
    return [np.asarray(one) for one in jax.tree.leaves((found, slopes, kernel))]


read = decoder_params._safetensors
for data, model in ((8, 1), (2, 4), (1, 8)):
    mesh = open_mesh(data, model)
    before = jax.live_arrays()  # held, so that no later array has the identity of one of them
    known = {id(one) for one in before}
    def watched(folder):
        for named in read(folder):
            assert isinstance(named[1], np.ndarray)
            yield named
            for one in jax.live_arrays():  # what is on a device lies there as it shall stay
                assert id(one) in known or one.sharding.device_set == set(jax.devices())
    decoder_params._safetensors = watched
    split, _ = load_decoder(folder, mesh=mesh)
    decoder_params._safetensors = read
    del before
    memory = generation_memory(config, jnp.float32, mesh, 8, 512)
    for device in jax.devices():
        held = sum(
            shard.data.nbytes
            for one in jax.tree.leaves(nnx.state(split))
            for shard in one.addressable_shards
            if shard.device == device
        )
        assert held == memory.exact["weights"], (held, memory)
    assert mesh_of(nnx.state(split)) == mesh
    rows = jax.device_put((ids, mask), row_sharding(mesh, 8))
    found = logits(nnx.state(split), *rows)
    assert np.abs(np.asarray(found) - wanted).max() < 1e-5
    compiled = logits.lower(nnx.state(split), *rows).compile().as_text()
    # Two sums a layer and one for the embedding; weights stay where they are.
    assert compiled.count(" all-reduce(") == (0 if model == 1 else 2 * config.num_layers + 1)
    assert "all-gather" not in compiled and "all-to-all" not in compiled
    generator = Generator(split, [263])
    cache = generator._empty_cache(8, 512)
    held = sum(one.addressable_shards[0].data.nbytes for one in jax.tree.leaves(cache))
    assert held == memory.exact["cache"]
    before = read_piece._cache_size(), write._cache_size()
    assert generator.generate(prompts) == written
    assert generator.generate(prompts[:4]) == written[:4]
    # The beginning, at one row, and the rest at eight (or four, where four can be shared).
    more = data != 8
    compiled = read_piece._cache_size() - before[0], write._cache_size() - before[1]
    assert compiled == (2 + more, 1 + more), compiled
    if model != 4:
        continue
    one, many = gradient(load_decoder(folder)[0]), gradient(split, mesh)
    for left, right in zip(one, many, strict=True):
        np.testing.assert_allclose(left, right, atol=1e-5)
        assert np.abs(left).max() > 1e-4
print("same")
"""


def test_a_decoder_split_over_eight_devices_is_the_same(folder):
    """Logits, greedy tokens, gradients; shares of weights and cache; few compilations."""
    environment = os.environ | {
        "PYTHONPATH": str(Path(__file__).parents[2] / "src"),
        "XLA_FLAGS": "--xla_force_host_platform_device_count=8",
        "JAX_PLATFORMS": "cpu",
    }
    command = [sys.executable, "-c", CHILD, str(folder)]
    child = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert child.stdout.split() == ["same"], child.stderr[-3000:]
