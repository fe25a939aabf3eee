"""The trained extractor: passages in, triplets with a confidence out. No language model."""

import dataclasses
import hashlib
import threading
from collections import deque
from collections.abc import Callable, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import jax
import numpy as np
from flax import nnx
from jaxtyping import Array

from triax.models import weights
from triax.models.adapters import (
    WEIGHTS_FILE,
    adapter_folder,
    add_lora,
    load_adapter,
    merge_lora,
    read_config,
)
from triax.models.buckets import plan_batches
from triax.models.compile_cache import use_compile_cache
from triax.models.encoder_params import load_encoder
from triax.models.passage_tokens import PassageTokenizer, PassageTokens
from triax.models.tagged_triplets import Phrases, Thresholds, WindowTags, read_triplets
from triax.models.triplet_tagger import Layout, Tagged, TaggerConfig, TripletTagger
from triax.records.text import clean
from triax.records.triplets import Triplet

PART = "extract"
TRAINABLE = nnx.Any(nnx.LoRAParam, nnx.PathContains("head"))
BUCKETS = (64, 96, 128, 160, 192, 256)
_IN_FLIGHT = 2  # batches that wait on the device while the next is padded
_BLOCK = 512  # passages whose tags are held at once


def build_tagger(
    base: Path, config: TaggerConfig, rank: int, seed: int = 0, dtype: str = "float32"
) -> TripletTagger:
    """A base encoder with fresh adapters and a fresh head."""
    encoder, _ = load_encoder(base, dtype)
    rngs = nnx.Rngs(jax.random.key(seed))
    add_lora(encoder, rank, rngs)
    return TripletTagger(encoder, config, rngs=rngs)


class PassageReader:
    """A tagger with its tokenizer and lists: passages to triplets, in batches of few shapes."""

    def __init__(
        self,
        model: TripletTagger,
        tokenizer: PassageTokenizer,
        phrases: Phrases,
        thresholds: Thresholds,
        max_length: int = 256,
        batch_tokens: int = 2048,
    ):
        """Takes a model, whose weights are copied out now."""
        self._graph, state = nnx.split(model)
        self._leaves, self._tree = jax.tree.flatten(state)
        self._tokenizer = tokenizer
        self._phrases = phrases
        self._max_length = max_length
        self._batch_tokens = batch_tokens
        self.thresholds = thresholds

    def read(
        self, passages: Sequence[tuple[str, str]], progress: Callable[[int], None] | None = None
    ) -> list[tuple[Triplet, ...]]:
        """The triplets of each (title, text), most confident first.

        Args:
            passages: cleaned texts; an empty one has no triplets.
            progress: is called with the number of passages done.
        """
        found: list[tuple[Triplet, ...]] = []
        for start in range(0, len(passages), _BLOCK):
            found += self._read_block(passages[start : start + _BLOCK])
            if progress is not None:
                progress(len(found))
        return found

    def _read_block(self, passages: Sequence[tuple[str, str]]) -> list[tuple[Triplet, ...]]:
        windows = [
            self._tokenizer.windows(title, text, self._max_length) for title, text in passages
        ]
        flat = [window for group in windows for window in group]
        tags = iter(self._tag(flat))
        return [
            read_triplets(
                title,
                text,
                [(window, next(tags)) for window in group],
                self._phrases,
                self.thresholds,
            )
            for (title, text), group in zip(passages, windows)
        ]

    def _tag(self, windows: Sequence[PassageTokens]) -> list[WindowTags]:
        """The tags of each window, in order."""
        tags: dict[int, WindowTags] = {}
        pending: deque[tuple[tuple[int, ...], Tagged]] = deque()

        def fetch() -> None:
            positions, tagged = pending.popleft()
            arrays = [np.asarray(array) for array in tagged]
            for row, position in enumerate(positions):
                tags[position] = WindowTags(*(array[row] for array in arrays))

        lengths = [len(window.ids) for window in windows]
        buckets = tuple(bucket for bucket in BUCKETS if bucket < self._max_length)
        for batch in plan_batches(lengths, self._batch_tokens, (*buckets, self._max_length)):
            chosen = [windows[position] for position in batch.positions]
            arrays = pad_windows(chosen, batch.rows, batch.length)
            tagged = _forward(self._graph, self._tree, self._leaves, *arrays)
            pending.append((batch.positions, tagged))
            if len(pending) > _IN_FLIGHT:
                fetch()
        while pending:
            fetch()
        return [tags[number] for number in range(len(windows))]


class TrainedTagger:
    """A `PassageReader` from an adapter's folder; nothing is loaded before the first use.

    Safe to use from several threads; they take turns.
    """

    def __init__(
        self,
        adapter: str = "extractor",
        batch_tokens: int | None = None,
        dtype: str = "float32",
        pair_threshold: float | None = None,
        relation_threshold: float | None = None,
    ):
        """Takes the settings.

        Args:
            adapter: a shipped one's name, a folder or a hub name (see `adapter_folder`).
            batch_tokens: rows x length of a batch; None means 2,048 on a CPU, else 32,768.
            dtype: of the encoder's computation.
            pair_threshold: least probability of an open triplet; None takes the trained one.
            relation_threshold: the same for a named relation.
        """
        self.adapter = adapter
        self._batch_tokens = batch_tokens
        self._dtype = dtype
        self._pair_threshold = pair_threshold
        self._relation_threshold = relation_threshold
        self._lock = threading.Lock()

    @cached_property
    def folder(self) -> Path:
        """Where the adapter is."""
        return adapter_folder(self.adapter)

    @cached_property
    def _config(self) -> dict[str, Any]:
        return read_config(self.folder, PART)

    @property
    def thresholds(self) -> Thresholds:
        """The trained thresholds, or what was asked for."""
        trained = self._config["thresholds"]
        pair = self._pair_threshold
        asked = {"pair": pair, "untitled": pair, "relation": self._relation_threshold}
        return Thresholds(**(trained | {k: v for k, v in asked.items() if v is not None}))

    @property
    def fingerprint(self) -> dict[str, Any]:
        """All that decides the triplets, for the manifest of an extraction (R28)."""
        digest = hashlib.sha256((self.folder / WEIGHTS_FILE).read_bytes()).hexdigest()
        thresholds = self.thresholds
        return {
            "base": self._config["base"],
            "adapter_sha256": digest,
            "dtype": self._dtype,
            "thresholds": dataclasses.asdict(thresholds),
        }

    @cached_property
    def _reader(self) -> PassageReader:
        use_compile_cache()
        config = self._config
        base = weights.locate(config["base"])
        tagger = build_tagger(base, TaggerConfig(**config["tagger"]), config["rank"])
        load_adapter(self.folder, tagger, TRAINABLE)
        merge_lora(tagger)
        batch_tokens = self._batch_tokens
        if batch_tokens is None:
            batch_tokens = 2048 if jax.default_backend() == "cpu" else 32768
        phrases = Phrases(**{name: tuple(found) for name, found in config["phrases"].items()})
        return PassageReader(
            tagger,
            PassageTokenizer(base),
            phrases,
            self.thresholds,
            config["max_length"],
            batch_tokens,
        )

    def read(
        self, passages: Sequence[tuple[str, str]], progress: Callable[[int], None] | None = None
    ) -> list[tuple[Triplet, ...]]:
        """The triplets of each (title, text), most confident first; titles may be empty."""
        cleaned = [(" ".join(clean(title).split()), clean(text)) for title, text in passages]
        with self._lock:
            return self._reader.read(cleaned, progress)


def pad_windows(
    windows: Sequence[PassageTokens], rows: int, length: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """ids, mask, begins and ends [rows, length] and title_end [rows], padded with 0 and False."""
    ids = np.zeros((rows, length), np.int32)
    mask, begins, ends = np.zeros((3, rows, length), bool)
    title_end = np.ones(rows, np.int32)
    for row, window in enumerate(windows):
        count = len(window.ids)
        ids[row, :count] = window.ids
        mask[row, :count] = True
        begins[row, :count] = window.begins
        ends[row, :count] = window.ends
        title_end[row] = window.title_end
    return ids, mask, begins, ends, title_end


@partial(jax.jit, static_argnums=(0, 1))
def _forward(
    graph: Any,
    tree: Any,
    leaves: list[Array],
    ids: Array,
    mask: Array,
    begins: Array,
    ends: Array,
    title_end: Array,
) -> Tagged:
    model = nnx.merge(graph, jax.tree.unflatten(tree, leaves))
    return model(ids, mask, Layout(begins, ends, title_end))
