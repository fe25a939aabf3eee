"""How fast a LoRA training step is here, against torch with transformers and peft.

    python bench/training_speed.py [smollm2] [minilm] [rounds=3]

The same random weights' shapes, batch, length, rank, optimiser and number of threads on both
sides, float32; one step each in turn, and the ratio of the medians, so that what else runs on the
machine meets both alike. SmolLM2-135M: B4 x T64, the loss of all tokens; MiniLM-L6: B16 x T128, a
two-way span loss. `tiny` is a smoke run of two layers.
"""

import json
import os
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "src")]

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
import optax  # noqa: E402
import peft  # noqa: E402
import torch  # noqa: E402
import transformers  # noqa: E402
from flax import nnx  # noqa: E402

from triax.models.adapters import DECODER_LAYERS, add_lora  # noqa: E402
from triax.models.decoder import Decoder, DecoderConfig  # noqa: E402
from triax.models.encoder import EncoderConfig, TransformerEncoder  # noqa: E402

RANK, RATE = 8, 1e-3
SMOLLM2 = DecoderConfig(49152, 576, 1536, 30, 9, 3, 64, 1e-5, 100_000.0, tie_embeddings=True)
Step = Callable[[], None]


def batch(rows: int, length: int, vocabulary: int) -> np.ndarray:
    """Random token ids."""
    return np.random.default_rng(0).integers(0, vocabulary, (rows, length)).astype(np.int32)


def our_step(model: nnx.Module, loss: Callable[[Any], Any]) -> Step:
    """One step of AdamW on the adapters, compiled."""
    graph, trained, frozen = nnx.split(model, nnx.LoRAParam, ...)
    optimizer = optax.adamw(RATE)
    moments = optimizer.init(trained)

    @partial(jax.jit, donate_argnums=(0, 1))
    def step(trained: Any, moments: Any, frozen: Any) -> tuple[Any, Any]:
        grads = jax.grad(lambda part: loss(nnx.merge(graph, part, frozen)))(trained)
        updates, moments = optimizer.update(grads, moments, trained)
        return optax.apply_updates(trained, updates), moments

    held = [trained, moments]

    def run() -> None:
        held[:] = step(*held, frozen)
        jax.block_until_ready(held[0])

    return run


def their_step(model: Any, names: tuple[str, ...], loss: Callable[[Any], Any]) -> Step:
    """One step of AdamW on peft's adapters, eager as the Trainer runs it."""
    config = peft.LoraConfig(r=RANK, lora_alpha=RANK, lora_dropout=0.0, target_modules=list(names))
    adapted = peft.get_peft_model(model, config).train()
    optimizer = torch.optim.AdamW((p for p in adapted.parameters() if p.requires_grad), lr=RATE)

    def run() -> None:
        optimizer.zero_grad()
        loss(adapted).backward()
        optimizer.step()

    return run


def smollm2(rows: int = 4, length: int = 64, config: DecoderConfig = SMOLLM2) -> tuple[Step, Step]:
    """Both steps of a causal language model, all of whose tokens are to be written."""
    ids = batch(rows, length, config.vocab_size)
    decoder = Decoder(config, rngs=nnx.Rngs(0))
    add_lora(decoder, RANK, nnx.Rngs(0), DECODER_LAYERS)
    mask = jnp.ones(ids.shape, bool)

    def ours(model: Decoder) -> Any:
        logits = model(jnp.asarray(ids), mask)[:, :-1]
        return optax.softmax_cross_entropy_with_integer_labels(logits, ids[:, 1:]).mean()

    theirs = transformers.LlamaForCausalLM(
        transformers.LlamaConfig(
            vocab_size=config.vocab_size,
            hidden_size=config.hidden_size,
            intermediate_size=config.intermediate_size,
            num_hidden_layers=config.num_layers,
            num_attention_heads=config.num_heads,
            num_key_value_heads=config.num_kv_heads,
            tie_word_embeddings=True,
        )
    )
    tokens = torch.tensor(ids.astype(np.int64))
    return (
        our_step(decoder, ours),
        their_step(
            theirs, DECODER_LAYERS, lambda model: model(input_ids=tokens, labels=tokens).loss
        ),
    )


def minilm(rows: int = 16, length: int = 128, layers: int = 6) -> tuple[Step, Step]:
    """Both steps of an encoder, whose states are to point at a start and an end."""
    shape = {
        "vocab_size": 30522,
        "hidden_size": 384,
        "intermediate_size": 1536,
        "num_hidden_layers": layers,
        "num_attention_heads": 12,
    }
    theirs = transformers.BertModel(
        transformers.BertConfig(**shape, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0),
        add_pooling_layer=False,
    )
    config = EncoderConfig.from_hf(theirs.config.to_dict())
    encoder = TransformerEncoder(config, rngs=nnx.Rngs(0))
    add_lora(encoder, RANK, nnx.Rngs(0))
    ids, places = batch(rows, length, 30522), batch(rows, 2, length)
    mask, types = jnp.ones(ids.shape, bool), jnp.zeros(ids.shape, jnp.int32)

    def ours(model: TransformerEncoder) -> Any:
        scores = model(jnp.asarray(ids), mask, types)[..., :2].swapaxes(1, 2)
        return optax.softmax_cross_entropy_with_integer_labels(scores, places).mean()

    tokens, gold = torch.tensor(ids.astype(np.int64)), torch.tensor(places.astype(np.int64))

    def loss(model: Any) -> Any:
        scores = model(input_ids=tokens).last_hidden_state[..., :2]
        return torch.nn.functional.cross_entropy(scores, gold)

    names = ("query", "key", "value", "dense")
    return our_step(encoder, ours), their_step(theirs, names, loss)


def tiny() -> tuple[Step, Step]:
    """SmolLM2's shape cut to two layers and a small vocabulary."""
    return smollm2(2, 16, replace(SMOLLM2, vocab_size=512, num_layers=2))


def measure(steps: tuple[Step, Step], rounds: int) -> list[list[float]]:
    """Seconds of each step, ours and theirs in turn, after one that warms up."""
    seconds: list[list[float]] = [[], []]
    for number in range(rounds + 1):
        for kept, step in zip(seconds, steps):
            started = time.perf_counter()
            step()
            if number:
                kept.append(time.perf_counter() - started)
    return seconds


SHAPES = {
    "smollm2": (smollm2, 4 * 64),
    "minilm": (minilm, 16 * 128),
    "tiny": (tiny, 2 * 16),
}


def main() -> None:
    """Prints one JSON line a shape."""
    asked = [word for word in sys.argv[1:] if "=" not in word] or ["smollm2", "minilm"]
    rounds = int(dict(word.split("=") for word in sys.argv[1:] if "=" in word).get("rounds", 3))
    threads = len(os.sched_getaffinity(0))  # what XLA takes
    torch.set_num_threads(threads)
    for name in asked:
        build, tokens = SHAPES[name]
        ours, theirs = measure(build(), rounds)
        a, b = statistics.median(ours), statistics.median(theirs)
        facts = {
            "shape": name,
            "threads": threads,
            "rounds": rounds,
            "tokens_per_s": round(tokens / a, 1),
            "torch_tokens_per_s": round(tokens / b, 1),
            "ratio": round(b / a, 3),
            "ratios": [round(y / x, 3) for x, y in zip(ours, theirs)],
        }
        print(json.dumps(facts), flush=True)


if __name__ == "__main__":
    main()
