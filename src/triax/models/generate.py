"""Batched generation with a key-value cache and few compilations.

Prompts are read in fixed pieces, tokens are written by one jitted while-loop (see `decoding`);
the sizes of the batch and of the cache are powers of two. What all prompts of a batch begin with
is read once.
"""

import logging
from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from jaxtyping import Array, Bool

from triax.models.constraint import (
    Matcher,
    RowTables,
    TokenTable,
    free_table,
    host_table,
    stack_tables,
)
from triax.models.decoder import Decoder, KVCache, init_cache
from triax.models.decoder_sharding import cache_sharding, mesh_of, place_state, row_sharding
from triax.models.decoding import Graph, Limits, Rows, read_piece, spread_rows, write

_LOG = logging.getLogger(__name__)
PIECE = 64
_STOP_CHECK = 16
KEPT_PREFIXES = 4


@dataclass(frozen=True, slots=True, eq=False)
class Prompt:
    """One row: token ids to continue, and how.

    `table` or `matcher` constrain the output (at most one of them). `is_stopped` is asked of the
    ids written so far, every few tokens, and ends the row when it says so. The sample of a row
    with `temperature` > 0 depends on its own `seed` alone, not on the rest of the batch.
    """

    ids: tuple[int, ...]
    max_tokens: int
    temperature: float = 0.0
    seed: int = 0
    table: TokenTable | None = None
    matcher: Matcher | None = None
    is_stopped: Callable[[Sequence[int]], bool] | None = None


@dataclass(frozen=True, slots=True)
class Output:
    """What a row wrote, without the end token; `is_finished` unless `max_tokens` cut it."""

    ids: tuple[int, ...]
    is_finished: bool


class _Prefix(NamedTuple):
    """The cache of a beginning, read at batch 1; `padding` unused slots stand before it."""

    ids: tuple[int, ...]
    cache: KVCache
    padding: int


class Generator:
    """Generates with one decoder. Not for use by two threads at once."""

    def __init__(
        self,
        decoder: Decoder,
        eos_ids: Sequence[int],
        dtype: Any = jnp.float32,
        mesh: jax.sharding.Mesh | None = None,
    ):
        """Takes the decoder's weights as they are.

        Args:
            decoder: the model.
            eos_ids: tokens that end a row.
            dtype: of the cache.
            mesh: spreads rows over its first axis, and weights over its `model` axis if it has
                one (see `decoder_sharding`); None takes the mesh that the weights lie on.

        Raises:
            MeshError: the decoder cannot be split so.
        """
        self.config = decoder.config
        self.width = decoder.config.vocab_size
        definition, weights = nnx.split(decoder)
        mesh = mesh_of(weights) if mesh is None else mesh
        self._mesh = mesh if mesh is not None and mesh.size > 1 else None
        self._weights = weights if self._mesh is None else place_state(weights, decoder, self._mesh)
        self._graph = Graph(definition, self._mesh)
        self._dtype = dtype
        is_eos = np.zeros(self.width, bool)
        is_eos[list(eos_ids)] = True
        self._is_eos = jnp.asarray(is_eos)
        self._free = free_table(self.width)
        self._host = host_table(self.width)
        self._prefixes: OrderedDict[tuple[int, ...], _Prefix] = OrderedDict()
        self._recent: deque[tuple[int, ...]] = deque(maxlen=8)

    def generate(self, prompts: Sequence[Prompt]) -> list[Output]:
        """Continues all prompts together, in order.

        Raises:
            ValueError: a prompt is empty, or its grammar needs more than its `max_tokens`.
        """
        if not prompts:
            return []
        for number, prompt in enumerate(prompts):
            _check(number, prompt)
        batch = batch_bucket(len(prompts), self._num_shares)
        empty = Prompt(prompts[0].ids, max_tokens=0)
        padded = [*prompts, *[empty] * (batch - len(prompts))]
        rows, limits, tables = self._begin(padded)
        rows = self._loop(rows, limits, tables, padded)
        written, is_finished = np.asarray(rows.written), np.asarray(rows.is_finished)
        outputs = []
        for prompt, ids, finished in zip(prompts, written, is_finished):
            output = Output(tuple(ids[ids >= 0].tolist()), bool(finished))
            if prompt.matcher and not output.is_finished:
                # Cut by its limit: keep the longest beginning that is whole.
                output = Output(output.ids[: prompt.matcher.closed_length], False)
            outputs.append(output)
        return outputs

    def _begin(self, prompts: Sequence[Prompt]) -> tuple[Rows, Limits, RowTables]:
        """Reads all but each prompt's last token, which the loop reads first."""
        shared, prefix = self._prefix([prompt.ids for prompt in prompts])
        rest = [prompt.ids[shared:-1] for prompt in prompts]
        before = prefix.padding + len(prefix.ids) if prefix else 0
        after = -(-max(map(len, rest)) // PIECE) * PIECE
        start, batch = before + after, len(prompts)
        slots = slots_bucket(start + max(prompt.max_tokens for prompt in prompts))
        ids = np.zeros((batch, after), np.int32)
        key_mask = np.zeros((batch, slots), bool)
        positions = np.zeros((batch, after), np.int32)
        key_mask[:, start:] = True
        if prefix:
            key_mask[:, prefix.padding : prefix.padding + shared] = True
        for row, tokens in enumerate(rest):
            padding = after - len(tokens)
            ids[row, padding:] = tokens
            key_mask[row, before + padding : start] = True
            positions[row, padding:] = np.arange(shared, shared + len(tokens))
        mask = self._put(key_mask)
        if prefix:
            cache = spread_rows(prefix.cache, batch, slots, self._cache_place(batch))
        else:
            cache = self._empty_cache(batch, slots)
        cache = self._read(ids, positions, mask, cache, before)
        return self._start(prompts, cache, mask, start)

    def _start(
        self,
        prompts: Sequence[Prompt],
        cache: KVCache,
        mask: Bool[Array, "batch slots"],
        start: int,
    ) -> tuple[Rows, Limits, RowTables]:
        batch, slots = mask.shape
        max_tokens = np.array([prompt.max_tokens for prompt in prompts], np.int32)
        ints = partial(np.array, dtype=np.int32)
        rows = Rows(
            cache=cache,
            token=self._put(ints([prompt.ids[-1] for prompt in prompts])),
            position=self._put(ints([len(prompt.ids) - 1 for prompt in prompts])),
            state=self._put(np.zeros(batch, np.int32)),
            is_done=self._put(max_tokens <= 0),
            is_finished=self._put(np.zeros(batch, bool)),
            written=self._put(np.full((batch, slots), -1, np.int32)),
            step=self._put(np.int32(0)),
        )
        limits = Limits(
            key_mask=mask,
            max_tokens=self._put(max_tokens),
            temperature=self._put(np.array([p.temperature for p in prompts], np.float32)),
            seed=self._put(ints([prompt.seed % 2**31 for prompt in prompts])),
            is_eos=self._is_eos,
            start=jnp.int32(start),
        )
        chosen = [self._host if p.matcher else p.table or self._free for p in prompts]
        tables = stack_tables(chosen)
        return rows, limits, RowTables(*(jnp.asarray(array) for array in tables))

    def _loop(
        self, rows: Rows, limits: Limits, tables: RowTables, prompts: Sequence[Prompt]
    ) -> Rows:
        """Runs the jitted loop, in slices where the host must look at what is written."""
        matched = [row for row, prompt in enumerate(prompts) if prompt.matcher]
        watched = [row for row, prompt in enumerate(prompts) if prompt.is_stopped]
        last = max(prompt.max_tokens for prompt in prompts)
        slice_length = 1 if matched else _STOP_CHECK if watched else last
        step = 0
        while step < last:
            if matched:
                rows, tables = self._mask(rows, tables, prompts, matched)
            step = min(last, step + slice_length)
            rows = write(self._graph, self._weights, rows, limits, tables, jnp.int32(step))
            if matched or (watched and step % _STOP_CHECK == 0):
                rows = self._look(rows, prompts, matched, watched, step)
            if bool(rows.is_done.all()):
                break
        return rows

    def _mask(
        self, rows: Rows, tables: RowTables, prompts: Sequence[Prompt], matched: Sequence[int]
    ) -> tuple[Rows, RowTables]:
        """Puts what the matchers allow next into the classes of their rows' tables."""
        is_done = np.asarray(rows.is_done)
        is_eos = np.asarray(self._is_eos)
        classes, state = np.array(tables.classes), np.array(rows.state)
        for row in matched:
            if not is_done[row]:
                allowed = prompts[row].matcher.allowed(self.width)
                classes[row] = allowed
                state[row] = 0 if allowed[is_eos].any() else 1
        return rows._replace(state=self._put(state)), tables._replace(classes=jnp.asarray(classes))

    def _look(
        self,
        rows: Rows,
        prompts: Sequence[Prompt],
        matched: Sequence[int],
        watched: Sequence[int],
        step: int,
    ) -> Rows:
        """Tells matchers what was written, and ends rows that have reached their end."""
        written = np.asarray(rows.written[:, :step])
        is_done, is_finished = np.array(rows.is_done), np.array(rows.is_finished)
        for row in matched:
            token = int(written[row, step - 1])
            if token >= 0 and prompts[row].matcher.advance(token):
                is_done[row] = is_finished[row] = True
        for row in watched:
            ids = written[row][written[row] >= 0].tolist()
            if not is_done[row] and prompts[row].is_stopped(ids):
                is_done[row] = is_finished[row] = True
        return rows._replace(is_done=self._put(is_done), is_finished=self._put(is_finished))

    def _read(
        self,
        ids: np.ndarray,
        positions: np.ndarray,
        key_mask: Bool[Array, "batch slots"],
        cache: KVCache,
        index: int,
    ) -> KVCache:
        for at in range(0, ids.shape[1], PIECE):
            cache = read_piece(
                self._graph,
                self._weights,
                self._put(ids[:, at : at + PIECE]),
                self._put(positions[:, at : at + PIECE]),
                key_mask,
                cache,
                jnp.int32(index + at),
            )
        return cache

    def _prefix(self, rows: Sequence[tuple[int, ...]]) -> tuple[int, _Prefix | None]:
        """How many tokens all rows begin with, and their cache, if they are worth one.

        A single row is compared with the rows of earlier calls.
        """
        others = rows[1:]
        if others:
            shared = min(_common(rows[0], row) for row in set(others))
        else:
            shared = max((_common(rows[0], row) for row in self._recent), default=0)
        shared = min(shared, min(map(len, rows)) - 1)
        self._recent.append(rows[0])
        if shared < PIECE:
            return 0, None
        for ids, prefix in self._prefixes.items():
            reach = min(_common(ids, rows[0]), shared)
            if reach > shared - PIECE and len(ids) - reach < PIECE:
                self._prefixes.move_to_end(ids)
                return reach, prefix
        prefix = self._read_prefix(rows[0][:shared])
        self._prefixes[prefix.ids] = prefix
        if len(self._prefixes) > KEPT_PREFIXES:
            self._prefixes.popitem(last=False)
        return shared, prefix

    def _read_prefix(self, ids: tuple[int, ...]) -> _Prefix:
        padding = -len(ids) % PIECE
        end = padding + len(ids)
        slots = slots_bucket(end)
        key_mask = np.zeros((1, slots), bool)
        key_mask[:, padding:end] = True
        padded = np.array([(0,) * padding + ids], np.int32)
        positions = np.maximum(np.arange(end, dtype=np.int32) - padding, 0)[None]
        cache = self._empty_cache(1, slots)
        _LOG.debug("reading a shared prefix of %d tokens", len(ids))
        return _Prefix(ids, self._read(padded, positions, self._put(key_mask), cache, 0), padding)

    @property
    def _num_shares(self) -> int:
        """How many parts the rows of a batch are cut into."""
        return 1 if self._mesh is None else self._mesh.shape[self._mesh.axis_names[0]]

    def _cache_place(self, batch: int) -> jax.sharding.NamedSharding | None:
        return None if self._mesh is None else cache_sharding(self.config, self._mesh, batch)

    def _empty_cache(self, batch: int, slots: int) -> KVCache:
        return init_cache(self.config, batch, slots, self._dtype, self._cache_place(batch))

    def _put(self, array: np.ndarray | np.generic) -> Array:
        """Places an array whose first axis is the batch, or a number."""
        if self._mesh is None:
            return jnp.asarray(array)
        rows = array.shape[0] if array.ndim else 1
        return jax.device_put(array, row_sharding(self._mesh, rows))


def batch_bucket(size: int, shares: int = 1) -> int:
    """The batch that `size` rows run in: 1, 4, 8, 16, ...; above 1 a multiple of `shares`."""
    if size == 1:
        return 1
    batch = max(4, 1 << (size - 1).bit_length())
    return -(-batch // shares) * shares


def slots_bucket(size: int) -> int:
    """The cache that `size` tokens run in: 512, 1024, 2048, ... slots."""
    return max(512, 1 << (size - 1).bit_length())


def _common(left: Sequence[int], right: Sequence[int]) -> int:
    """Length of the common beginning."""
    size = min(len(left), len(right))
    differs = np.nonzero(np.array(left[:size]) != np.array(right[:size]))[0]
    return int(differs[0]) if len(differs) else size


def _check(number: int, prompt: Prompt) -> None:
    if not prompt.ids:
        raise ValueError(f"prompt {number} has no tokens, at least one is needed; start with BOS")
    if prompt.table is not None and prompt.table.min_tokens > prompt.max_tokens:
        raise ValueError(
            f"prompt {number} may write {prompt.max_tokens} tokens but its grammar needs at least "
            f"{prompt.table.min_tokens}; raise max_tokens"
        )
