"""Questions to the logits of a trained `QuestionClassifier`: padded, batched, from an adapter."""

import threading
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import jax
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
from triax.models.question_head import TRAINABLE, build_classifier
from triax.models.tokenizer import Tokenizer, load_tokenizer


class QuestionScorer:
    """Runs a `QuestionClassifier` over many questions, on all devices of a mesh."""

    def __init__(
        self,
        graph: Any,
        tokenizer: Tokenizer,
        max_length: int,
        num_outputs: int = 2,
        batch_tokens: int | None = None,
        mesh: Mesh | None = None,
    ):
        """Takes the graph of the model (`nnx.split`), the longest question in tokens and the
        number of logits; the current mesh if it is given none.
        """
        self._tokenizer = tokenizer
        self._buckets = bucket_lengths(max_length, (16, 24, 32, 48, 64, 96, 128, 256))
        self._max_length = max_length
        self._num_outputs = num_outputs
        self._batch_tokens = batch_tokens or (2048 if jax.default_backend() == "cpu" else 65536)
        self.mesh = current_mesh() if mesh is None else mesh
        self._by_row = rows_spread(self.mesh)
        self._forward: Callable[..., Any] = jax.jit(
            lambda state, ids, mask: nnx.merge(graph, state)(ids, mask)
        )

    def __call__(
        self, state: Any, questions: Sequence[str]
    ) -> Float32[np.ndarray, "questions outputs"]:
        """Logits, one row a question, in order."""
        ids = question_tokens(self._tokenizer, questions, self._max_length)
        logits = np.zeros((len(ids), self._num_outputs), np.float32)
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


class TrainedQuestionHead:
    """Logits from an adapter of one part; nothing is read or fetched before the first use.

    Safe to call from several threads; one call computes at a time.
    """

    def __init__(self, adapter: str, part: str, num_outputs: int = 2, dtype: str = "float32"):
        """Takes a shipped adapter, a folder or a hub name, the part that it must be of, the number
        of its logits, and the type of the computation.
        """
        self.adapter = adapter
        self._part = part
        self._num_outputs = num_outputs
        self._dtype = dtype
        self._lock = threading.RLock()

    @cached_property
    def folder(self) -> Path:
        """Where the adapter is."""
        return adapter_folder(self.adapter)

    @cached_property
    def config(self) -> dict[str, Any]:
        """config.json of the adapter."""
        return read_config(self.folder, self._part)

    @cached_property
    def _loaded(self) -> tuple[QuestionScorer, Any]:
        use_compile_cache()
        config = self.config
        base = weights.locate(config["base"])
        encoder, _ = load_encoder(base, self._dtype)
        model = build_classifier(
            encoder, config["pooling"], config["rank"], num_outputs=self._num_outputs
        )
        load_adapter(self.folder, model, TRAINABLE if config["rank"] is not None else nnx.Param)
        merge_lora(model)
        graph, state = nnx.split(model)
        tokenizer = load_tokenizer(base)
        scorer = QuestionScorer(graph, tokenizer, config["max_length"], self._num_outputs)
        return scorer, jax.device_put(state, replicated(scorer.mesh))

    def logits(self, questions: Sequence[str]) -> Float32[np.ndarray, "questions outputs"]:
        """One row a question, in order."""
        with self._lock:
            scorer, state = self._loaded
            return scorer(state, questions)
