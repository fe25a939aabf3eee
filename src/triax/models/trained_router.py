"""A trained router from its adapter: questions to the probabilities that a side suffices."""

import threading
from collections.abc import Callable, Sequence
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from jax.sharding import Mesh
from jaxtyping import Float32

from triax.models import weights
from triax.models.adapters import adapter_folder, load_adapter, merge_lora, read_config
from triax.models.buckets import bucket_lengths, pad_batch, plan_batches
from triax.models.compile_cache import use_compile_cache
from triax.models.encoder_params import load_encoder
from triax.models.mesh import current_mesh, replicated, rows_spread
from triax.models.route_head import TRAINABLE, build_router
from triax.models.tokenizer import Tokenizer, load_tokenizer

PART = "router"


class RouteScorer:
    """Runs a `RouteClassifier` over many questions: padded, batched, on all devices of a mesh."""

    def __init__(
        self,
        graph: Any,
        tokenizer: Tokenizer,
        max_length: int,
        batch_tokens: int | None = None,
        mesh: Mesh | None = None,
    ):
        """Takes the graph of the model (`nnx.split`) and the longest question in tokens; the
        current mesh if it is given none.
        """
        self._tokenizer = tokenizer
        self._buckets = bucket_lengths(max_length, (16, 24, 32, 48, 64, 96, 128, 256))
        self._max_length = max_length
        self._batch_tokens = batch_tokens or (2048 if jax.default_backend() == "cpu" else 65536)
        self.mesh = current_mesh() if mesh is None else mesh
        self._by_row = rows_spread(self.mesh)
        self._forward: Callable[..., Any] = jax.jit(
            lambda state, ids, mask: nnx.merge(graph, state)(ids, mask)
        )

    def __call__(self, state: Any, questions: Sequence[str]) -> Float32[np.ndarray, "questions 2"]:
        """Logits of "vanilla suffices" and "the graph suffices"."""
        ids = question_tokens(self._tokenizer, questions, self._max_length)
        logits = np.zeros((len(ids), 2), np.float32)
        for batch in plan_batches(
            [len(one) for one in ids], self._batch_tokens, self._buckets, self.mesh.size
        ):
            arrays = pad_batch(batch, ids, self._tokenizer.pad_id)
            found = np.asarray(self._forward(state, *jax.device_put(arrays, self._by_row)))
            logits[list(batch.positions)] = found[: len(batch.positions)]
        return logits


def question_tokens(
    tokenizer: Tokenizer, questions: Sequence[str], max_length: int
) -> list[list[int]]:
    """Token ids of questions; a longer one loses its middle, so that both ends are read."""
    first, last = tokenizer.encode("", add_special=True)
    room = max_length - 2
    rows = []
    for ids, _ in tokenizer.encode_offsets(list(questions)):
        if len(ids) > room:
            ids = [*ids[: room - room // 2], *ids[len(ids) - room // 2 :]]
        rows.append([first, *ids, last])
    return rows


class TrainedRouteReader:
    """Probabilities for questions; nothing is read or fetched before the first use.

    Safe to call from several threads; one call computes at a time.
    """

    def __init__(self, adapter: str = "router", dtype: str = "float32"):
        """Takes a shipped adapter, a folder or a hub name, and the type of the computation."""
        self.name = adapter
        self.adapter = adapter
        self._dtype = dtype
        self._lock = threading.RLock()

    @cached_property
    def folder(self) -> Path:
        """Where the adapter is."""
        return adapter_folder(self.adapter)

    @cached_property
    def config(self) -> dict[str, Any]:
        """config.json of the adapter; `threshold` is the one chosen on validation."""
        return read_config(self.folder, PART)

    @cached_property
    def _loaded(self) -> tuple[RouteScorer, Any]:
        use_compile_cache()
        config = self.config
        base = weights.locate(config["base"])
        encoder, _ = load_encoder(base, self._dtype)
        model = build_router(encoder, config["pooling"], config["rank"])
        load_adapter(self.folder, model, TRAINABLE if config["rank"] is not None else nnx.Param)
        merge_lora(model)
        graph, state = nnx.split(model)
        scorer = RouteScorer(graph, load_tokenizer(base), config["max_length"])
        return scorer, jax.device_put(state, replicated(scorer.mesh))

    def read(self, questions: Sequence[str]) -> Float32[np.ndarray, "questions 2"]:
        """Probabilities that vanilla retrieval, and that the graph, suffices."""
        with self._lock:
            scorer, state = self._loaded
            return np.asarray(jax.nn.sigmoid(jnp.asarray(scorer(state, questions))))


@lru_cache(maxsize=4)
def shared_route_reader(adapter: str = "router", dtype: str = "float32") -> TrainedRouteReader:
    """One reader for all parts that ask for the same one, so that its weights are held once."""
    return TrainedRouteReader(adapter, dtype)
