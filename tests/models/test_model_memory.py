from dataclasses import replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from flax import nnx

from triax.models.adapters import DECODER_LAYERS, add_lora
from triax.models.deberta import DebertaConfig, DebertaEncoder
from triax.models.decoder import Decoder, DecoderConfig, init_cache
from triax.models.decoding import Graph, read_piece
from triax.models.encoder import EncoderConfig, TransformerEncoder
from triax.models.model_memory import (
    adapter_training_memory,
    decoder_activations,
    encoder_memory,
    generation_memory,
    planned_mesh,
    training_memory,
)
from triax.training.tasks.write import token_losses

# config.json of meta-llama/Llama-3.1-8B
LLAMA_31_8B = DecoderConfig.from_hf(
    {
        "model_type": "llama",
        "hidden_size": 4096,
        "intermediate_size": 14336,
        "num_attention_heads": 32,
        "num_hidden_layers": 32,
        "num_key_value_heads": 8,
        "vocab_size": 128256,
        "tie_word_embeddings": False,
    }
)
PARAMETERS = 8_030_261_248  # as published
TINY = DecoderConfig(264, 64, 128, 3, 8, 4, 8)


def held(tree):
    return sum(leaf.nbytes for leaf in jax.tree.leaves(tree))


def test_llama_31_8b_on_one_device_and_on_eight():
    on_one = generation_memory(LLAMA_31_8B, "bfloat16", planned_mesh(1), 16, 4096)
    assert on_one.exact["weights"] == 2 * PARAMETERS
    # Keys and values, of 32 layers, 8 heads and 128 numbers of 2 bytes.
    assert on_one.exact["cache"] == 16 * 4096 * (2 * 32 * 8 * 128 * 2)
    norms = (2 * 32 + 1) * 4096
    for data, model in ((8, 1), (2, 4), (1, 8)):
        memory = generation_memory(LLAMA_31_8B, "bfloat16", planned_mesh(data, model), 16, 4096)
        assert memory.exact["weights"] == 2 * ((PARAMETERS - norms) // model + norms)
        assert memory.exact["cache"] == on_one.exact["cache"] // 8


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize(
    "change", [{}, {"tie_embeddings": True}, {"qkv_bias": True}, {"qk_norm": True}], ids=str
)
def test_weights_and_cache_are_counted_as_they_are_held(change, dtype):
    config = replace(TINY, **change)
    decoder = nnx.jit(lambda: Decoder(config, dtype=jnp.dtype(dtype), rngs=nnx.Rngs(0)))()
    memory = generation_memory(config, dtype, planned_mesh(1), 4, 128)
    assert memory.exact["weights"] == held(nnx.state(decoder))
    assert memory.exact["cache"] == held(init_cache(config, 4, 128, jnp.dtype(dtype)))


def adapted():
    decoder = Decoder(TINY, rngs=nnx.Rngs(0))
    add_lora(decoder, 4, nnx.Rngs(1), DECODER_LAYERS)
    return decoder


def test_a_training_is_counted_as_it_is_held():
    model, adam = nnx.jit(adapted)(), optax.adamw(1e-3)
    _, trained, frozen = nnx.split(model, nnx.LoRAParam, ...)
    moments = adam.init(trained)
    planned = adapter_training_memory(TINY, "float32", planned_mesh(1), adam, 4, 8, 32)
    assert planned.exact["frozen weights"] == held(frozen)
    for name in ("trained weights", "gradients", "best weights"):
        assert planned.exact[name] == held(trained)
    assert planned.exact["moments"] - held(moments) == 0
    told = training_memory(trained, moments, frozen, model, planned_mesh(1))
    assert told.exact == planned.exact and told.rough == {}


@pytest.mark.parametrize("remat", [False, True])
def test_the_bound_on_a_gradient_holds_and_is_no_wild_guess(remat):
    rows, width, slots = 8, 64, 16
    graph, trained, frozen = nnx.split(nnx.eval_shape(adapted), nnx.LoRAParam, ...)
    ids = jax.ShapeDtypeStruct((rows, width), jnp.int32)
    place = jax.ShapeDtypeStruct((rows, slots), jnp.int32)
    mask = jax.ShapeDtypeStruct((rows, width), bool)
    batch = {"ids": ids, "mask": mask, "places": place, "targets": place}

    def loss(trained, frozen, batch):
        return token_losses(nnx.merge(graph, trained, frozen), batch, remat)[1].sum()

    compiled = jax.jit(jax.grad(loss)).lower(trained, frozen, batch).compile()
    used = compiled.memory_analysis().temp_size_in_bytes
    # XLA makes little of `remat` on a CPU, so this is the bound for both there.
    bound = decoder_activations(TINY, "float32", rows, width, slots)
    assert used <= bound <= 3 * used


def test_with_remat_a_layer_more_keeps_its_input_more():
    deeper = replace(TINY, num_layers=TINY.num_layers + 1)
    less, more = (decoder_activations(c, "bfloat16", 8, 64, remat=True) for c in (TINY, deeper))
    assert more - less == 8 * 64 * TINY.hidden_size * 2


def test_the_bound_on_reading_holds_and_is_no_wild_guess():
    batch, slots, piece = 8, 512, 64
    graph, state = nnx.split(nnx.eval_shape(lambda: Decoder(TINY, rngs=nnx.Rngs(0))))
    ids = jax.ShapeDtypeStruct((batch, piece), jnp.int32)
    mask = jax.ShapeDtypeStruct((batch, slots), bool)
    cache = jax.eval_shape(partial(init_cache, TINY, batch, slots))
    number = jax.ShapeDtypeStruct((), jnp.int32)
    compiled = read_piece.lower(Graph(graph), state, ids, ids, mask, cache, number).compile()
    used = compiled.memory_analysis().temp_size_in_bytes
    memory = generation_memory(TINY, "float32", planned_mesh(1), batch, slots, piece)
    assert used <= memory.rough["activations"] <= 3 * used


@pytest.mark.parametrize(
    ("kind", "config"),
    [
        (TransformerEncoder, EncoderConfig("bert", 40, 16, 2, 2, 24, 32)),
        (DebertaEncoder, DebertaConfig("deberta-v2", 40, 16, 2, 2, 24, 32)),
    ],
)
def test_the_weights_of_an_encoder(kind, config):
    model = nnx.jit(lambda: kind(config, jnp.bfloat16, rngs=nnx.Rngs(0)))()
    memory = encoder_memory(config, "bfloat16", 64, 32)
    assert memory.exact["weights"] == held(nnx.state(model))
    assert np.isfinite(memory.total) and memory.rough["activations"] > 0
