"""Texts to unit vectors with a pretrained encoder; a `triax.records.verbs.Encoder`."""

import hashlib
import json
import logging
import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path
from typing import Any

import jax
import numpy as np
from flax import nnx
from jaxtyping import Array, Bool, Float, Float32, Int32

from triax.models import weights
from triax.models.buckets import bucket_lengths, pad_batch, plan_batches
from triax.models.compile_cache import use_compile_cache
from triax.models.encoder import EncoderConfig, Pooling, pool, unit_rows
from triax.models.encoder_params import load_encoder, read_config
from triax.models.memory import report
from triax.models.mesh import current_mesh, replicated, rows_spread
from triax.models.model_memory import encoder_memory
from triax.models.tokenizer import Tokenizer, load_tokenizer
from triax.records.verbs import TextRole

_log = logging.getLogger(__name__)
_WINDOW = 16384  # texts whose tokens are held at once
_IN_FLIGHT = 2  # batches that wait on the device while the next is padded


@dataclass(frozen=True, slots=True)
class Preset:
    """How a published model wants to be used. `pattern` is a shell pattern over hub names."""

    pattern: str
    pooling: Pooling
    query_prefix: str = ""
    passage_prefix: str = ""


# From the models' cards. Contriever is trained for the plain dot product; here its rows are scaled
# to length 1 unless normalize=False, so that scores are cosines, and rankings may differ.
PRESETS = (
    Preset("sentence-transformers/all-MiniLM-L6-v2", "mean"),
    Preset("sentence-transformers/all-mpnet-base-v2", "mean"),
    Preset(
        "BAAI/bge-*-en-v1.5", "cls", "Represent this sentence for searching relevant passages: "
    ),
    Preset("intfloat/e5-*", "mean", "query: ", "passage: "),
    Preset("facebook/contriever*", "mean"),
)


class TextEncoder:
    """Embeds texts with a BERT-like model, rows spread over all devices of the current mesh.

    Nothing is read or fetched before the first use. Each distinct text is encoded once. A text
    longer than `max_length` tokens is cut and counted in `truncated`; one without any token
    (empty, white space, control characters) is the zero vector. A vector does not depend on the
    texts beside it, but for rounding (1e-6).
    """

    def __init__(
        self,
        model: str = "sentence-transformers/all-MiniLM-L6-v2",
        pooling: Pooling | None = None,
        normalize: bool = True,
        max_length: int = 256,
        query_prefix: str | None = None,
        passage_prefix: str | None = None,
        batch_tokens: int | None = None,
        dtype: str = "float32",
    ):
        """Takes the settings.

        Args:
            model: a hub name or a folder (see `weights.locate`).
            pooling: None takes it from the model's 1_Pooling/config.json, else from `PRESETS`.
            normalize: scale rows to length 1.
            max_length: tokens of a text that are read, special tokens and prefix among them; a
                model with fewer positions lowers it.
            query_prefix: is put before queries; None takes it from `PRESETS`, else "".
            passage_prefix: the same for passages.
            batch_tokens: rows x length of a batch on each device, which bounds the memory; None
                means 1,024 on a CPU, where more falls out of its caches, else 32,768.
            dtype: of the computation, "float32" or "bfloat16".

        Raises:
            ValueError: a number is out of range or the dtype is another.
        """
        if max_length < 3:
            raise ValueError(f"max_length is {max_length}, expected at least 3 (two are special)")
        if batch_tokens is not None and batch_tokens < 1:
            raise ValueError(f"batch_tokens is {batch_tokens}, expected at least 1, or None")
        if dtype not in ("float32", "bfloat16"):
            raise ValueError(f"dtype is {dtype!r}, expected 'float32' or 'bfloat16'")
        preset = next((found for found in PRESETS if fnmatchcase(model, found.pattern)), None)
        prefixes = ("", "") if preset is None else (preset.query_prefix, preset.passage_prefix)
        self.name = model if not Path(model).is_dir() else Path(model).resolve().name
        self.model = model
        self.normalize = normalize
        self.query_prefix = prefixes[0] if query_prefix is None else query_prefix
        self.passage_prefix = prefixes[1] if passage_prefix is None else passage_prefix
        self.dtype = dtype
        self.truncated = 0
        self._pooling = pooling
        self._preset = preset
        self._max_length = max_length
        self._batch_tokens = batch_tokens
        self._lock = threading.RLock()

    @cached_property
    def folder(self) -> Path:
        """Where the model's files are; fetches them if need be."""
        return weights.locate(self.model)

    @cached_property
    def _config(self) -> EncoderConfig:
        return read_config(self.folder)

    @property
    def dimension(self) -> int:
        """Components of a vector."""
        return self._config.width

    @property
    def max_length(self) -> int:
        """Tokens of a text that are read."""
        return min(self._max_length, self._config.max_length)

    @cached_property
    def pooling(self) -> Pooling:
        """How token vectors become one: as given, as the model's folder says, or by preset.

        Raises:
            ValueError: no one says it, or the folder asks for one that is not built here.
        """
        if self._pooling is not None:
            return self._pooling
        if found := read_pooling(self.folder):
            return found
        if self._preset is not None:
            return self._preset.pooling
        raise ValueError(
            f"nothing tells the pooling of {self.name}: no 1_Pooling/config.json in {self.folder} "
            "and no preset; give pooling='mean' or 'cls'"
        )

    @cached_property
    def fingerprint(self) -> dict[str, Any]:
        """All that decides the vectors, for the manifest of an index (R5)."""
        return {
            "name": self.name,
            "weights_sha256": hash_weights(self.folder),
            "dimension": self.dimension,
            "dtype": self.dtype,
            "normalize": self.normalize,
            "pooling": self.pooling,
            "query_prefix": self.query_prefix,
            "passage_prefix": self.passage_prefix,
            "max_length": self.max_length,
        }

    @property
    def revision(self) -> str:
        """A short hash of the fingerprint."""
        text = json.dumps(self.fingerprint, sort_keys=True)
        return hashlib.sha256(text.encode("utf-8")).hexdigest()[:16]

    def encode(
        self,
        texts: Sequence[str],
        role: TextRole = "passage",
        progress: Callable[[int], None] | None = None,
    ) -> Float32[np.ndarray, "texts dimension"]:
        """Embeds texts.

        Args:
            texts: any texts; lone surrogates are replaced by U+FFFD first.
            role: which prefix is put before them.
            progress: is called with the number of distinct texts done so far.
        """
        place: dict[str, int] = {}
        inverse = np.array([place.setdefault(clean(text), len(place)) for text in texts], np.int64)
        distinct = list(place)
        vectors = np.zeros((len(distinct), self.dimension), np.float32)
        prefix = self.query_prefix if role == "query" else self.passage_prefix
        with self._lock:
            for start in range(0, len(distinct), _WINDOW):
                part = distinct[start : start + _WINDOW]
                self._encode_window(
                    part, prefix, vectors[start : start + len(part)], start, progress
                )
        return vectors if len(distinct) == len(texts) else vectors[inverse]

    def _encode_window(
        self,
        texts: Sequence[str],
        prefix: str,
        out: Float32[np.ndarray, "texts dimension"],
        done: int,
        progress: Callable[[int], None] | None,
    ) -> None:
        """Writes the vectors of distinct texts into `out`, where rows of blank texts stay 0."""
        kept = [number for number, text in enumerate(texts) if not is_blank(text)]
        ids = self._tokenize([prefix + texts[number] for number in kept])
        kept = [number for number, tokens in zip(kept, ids) if tokens]
        ids = [tokens for tokens in ids if tokens]
        done += len(texts) - len(kept)
        pending: deque[tuple[list[int], Array]] = deque()

        def fetch() -> None:
            nonlocal done
            rows, values = pending.popleft()
            out[rows] = np.asarray(values)[: len(rows)]
            done += len(rows)
            if progress is not None:
                progress(done)

        for batch in plan_batches(
            [len(tokens) for tokens in ids],
            self._tokens_at_once,
            bucket_lengths(self.max_length),
            current_mesh().size,
        ):
            rows = [kept[position] for position in batch.positions]
            pending.append((rows, self._embed(*pad_batch(batch, ids, self._pad_id))))
            if len(pending) > _IN_FLIGHT:
                fetch()
        while pending:
            fetch()
        if not kept and texts and progress is not None:
            progress(done)

    def _tokenize(self, texts: Sequence[str]) -> list[list[int]]:
        """Token ids of each text, cut to `max_length`; none where only special tokens are left."""
        tokenizer, num_special, num_last = self._tokenizer
        found = []
        cut = 0
        for ids in tokenizer.encode_batch(texts, add_special=True):
            if len(ids) > self.max_length:
                ids = ids[: self.max_length - num_last] + ids[len(ids) - num_last :]
                cut += 1
            found.append(ids if len(ids) > num_special else [])
        if cut and not self.truncated:
            _log.warning(
                "%d texts are longer than %d tokens and were cut (later ones are counted in "
                "`truncated`); use shorter chunks or a larger max_length",
                cut,
                self.max_length,
            )
        self.truncated += cut
        return found

    @cached_property
    def _tokenizer(self) -> tuple[Tokenizer, int, int]:
        """The tokenizer, how many special tokens it adds, and how many of these at the end."""
        tokenizer = load_tokenizer(self.folder)
        empty, word = (tokenizer.encode(text, add_special=True) for text in ("", "a"))
        first = next((n for n, pair in enumerate(zip(empty, word)) if len(set(pair)) > 1), 0)
        return tokenizer, len(empty), len(empty) - first

    @cached_property
    def _pad_id(self) -> int:
        # Where positions count tokens that are not padding, padding must be told apart (MPNet).
        return 0 if self._config.pad_id is None else self._config.pad_id

    @property
    def _tokens_at_once(self) -> int:
        """Rows x length of a batch on each device."""
        return self._batch_tokens or (1024 if jax.default_backend() == "cpu" else 32768)

    @cached_property
    def _embed(self) -> Callable[..., Array]:
        """(ids, mask) to vectors: compiled once a shape, rows spread over the mesh."""
        use_compile_cache()
        mesh = current_mesh()
        estimate = encoder_memory(self._config, self.dtype, self._tokens_at_once, self.max_length)
        report(f"embedding with {self.name}", estimate, mesh)
        encoder, _ = load_encoder(self.folder, self.dtype)
        graph, state = nnx.split(encoder)
        # Plain arrays: to flatten a tree of nnx variables at each call costs more than a short row.
        leaves, tree = jax.tree.flatten(state)
        leaves = jax.device_put(leaves, replicated(mesh))
        by_row = rows_spread(mesh)
        pooling, normalize = self.pooling, self.normalize
        # "float32" is to mean float32; without this a GPU multiplies in TF32.
        precision = "highest" if self.dtype == "float32" else "default"

        @jax.jit
        def forward(leaves: list[Array], ids: Array, mask: Array) -> Array:
            with jax.default_matmul_precision(precision):
                hidden = nnx.merge(graph, jax.tree.unflatten(tree, leaves))(ids, mask)
                pooled = pool(hidden, mask, pooling)
            return unit_rows(pooled) if normalize else pooled

        def embed(
            ids: Int32[np.ndarray, "rows length"], mask: Bool[np.ndarray, "rows length"]
        ) -> Float[Array, "rows dimension"]:
            return forward(leaves, *jax.device_put((ids, mask), by_row))

        return embed


def clean(text: str) -> str:
    """Joins surrogate pairs and replaces lone surrogates, which UTF-8 cannot hold, by U+FFFD."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def is_blank(text: str) -> bool:
    """Nothing to read: only white space and control characters."""
    return not any(letter.isprintable() and not letter.isspace() for letter in text)


def read_pooling(folder: Path) -> Pooling | None:
    """What 1_Pooling/config.json of sentence-transformers says, or None without that file.

    Raises:
        ValueError: it says another than mean or cls, or more than one.
    """
    path = folder / "1_Pooling" / "config.json"
    if not path.is_file():
        return None
    config = json.loads(path.read_text("utf-8"))
    start = "pooling_mode_"
    modes = [key.removeprefix(start) for key in config if key.startswith(start) and config[key]]
    known: dict[str, Pooling] = {"mean_tokens": "mean", "cls_token": "cls"}
    if len(modes) != 1 or modes[0] not in known:
        raise ValueError(f"{path} asks for the pooling {modes}; one of {sorted(known)} is built")
    return known[modes[0]]


def hash_weights(folder: Path) -> str:
    """The sha256 of the weights: of the one file, or of the hashes of several in order of name."""
    paths = sorted(folder.glob("model*.safetensors")) or [folder / "pytorch_model.bin"]
    hashes = []
    for path in paths:
        with path.open("rb") as stream:
            hashes.append(hashlib.file_digest(stream, "sha256").hexdigest())
    if len(hashes) == 1:
        return hashes[0]
    return hashlib.sha256("".join(hashes).encode("ascii")).hexdigest()
