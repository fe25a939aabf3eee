"""The compiled part of generation: reading a piece of a prompt, and writing tokens in a loop.

Lengths, limits, seeds and grammars are arguments, so that only the sizes of the batch and of the
cache make XLA compile again.
"""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from flax import nnx
from jaxtyping import Array, Bool, Float, Int

from triax.models.constraint import RowTables, allowed_tokens, next_states
from triax.models.decoder import DecoderConfig, KVCache
from triax.models.decoder_sharding import cache_sharding, row_sharding


class Rows(NamedTuple):
    """All that changes from token to token. `written` is -1 where nothing is written yet."""

    cache: KVCache
    token: Int[Array, " batch"]
    position: Int[Array, " batch"]
    state: Int[Array, " batch"]
    is_done: Bool[Array, " batch"]
    is_finished: Bool[Array, " batch"]
    written: Int[Array, "batch slots"]
    step: Int[Array, ""]


class Limits(NamedTuple):
    """What stays the same for a batch; slot `start` takes the first new token."""

    key_mask: Bool[Array, "batch slots"]
    max_tokens: Int[Array, " batch"]
    temperature: Float[Array, " batch"]
    seed: Int[Array, " batch"]
    is_eos: Bool[Array, " width"]
    start: Int[Array, ""]


class Graph:
    """A module's definition as a static argument: its own hash takes milliseconds each time.

    With a mesh, rows and caches keep their places on it from call to call, so that nothing is
    compiled anew.
    """

    def __init__(self, definition: Any, mesh: jax.sharding.Mesh | None = None):
        self.definition = definition
        self.mesh = mesh
        self._hash = hash((definition, mesh))

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return self is other or (
            isinstance(other, Graph)
            and (self.definition, self.mesh) == (other.definition, other.mesh)
        )

    def placed(self, tree: Any, config: DecoderConfig) -> Any:
        """Rows or a cache where the mesh has them; for use inside of a jitted function."""
        if self.mesh is None:
            return tree
        caches = partial(cache_sharding, config)

        def place(array: Array) -> Array:
            rows = array.shape[0] if array.ndim else 1
            sharding = (caches if array.ndim == 4 else row_sharding)(self.mesh, rows)
            return jax.lax.with_sharding_constraint(array, sharding)

        return jax.tree.map(place, tree)


@partial(jax.jit, static_argnums=0, donate_argnums=5)
def read_piece(
    graph: Graph,
    weights: Any,
    ids: Int[Array, "batch piece"],
    positions: Int[Array, "batch piece"],
    key_mask: Bool[Array, "batch slots"],
    cache: KVCache,
    index: Int[Array, ""],
) -> KVCache:
    """The cache with one more piece of every row's prompt in the slots from `index` on."""
    decoder = nnx.merge(graph.definition, weights)
    cache = decoder.extend(ids, positions, key_mask, cache, index)[1]
    return graph.placed(cache, decoder.config)


@partial(jax.jit, static_argnums=(1, 2, 3))
def spread_rows(
    cache: Any, batch: int, slots: int, sharding: jax.sharding.Sharding | None = None
) -> Any:
    """One row's cache for every row of a batch, in more or fewer slots, and where it shall lie."""

    def spread(array: Array) -> Array:
        more = max(0, slots - array.shape[1])
        array = jnp.pad(array[:, :slots], ((0, 0), (0, more), (0, 0), (0, 0)))
        array = jnp.repeat(array, batch, axis=0)
        return array if sharding is None else jax.lax.with_sharding_constraint(array, sharding)

    return jax.tree.map(spread, cache)


@partial(jax.jit, static_argnums=0, donate_argnums=2)
def write(
    graph: Graph,
    weights: Any,
    rows: Rows,
    limits: Limits,
    tables: RowTables,
    until: Int[Array, ""],
) -> Rows:
    """Writes tokens until step `until`, or until every row is done."""
    decoder = nnx.merge(graph.definition, weights)

    def write_one(rows: Rows) -> Rows:
        hidden, cache = decoder.extend(
            rows.token[:, None],
            rows.position[:, None],
            limits.key_mask,
            rows.cache,
            limits.start + rows.step,
        )
        following = next_states(tables, rows.state)
        remaining = limits.max_tokens - rows.step
        allowed = allowed_tokens(tables, rows.state, following, remaining, limits.is_eos)
        logits = jnp.where(allowed, decoder.logits(hidden[:, 0]), -jnp.inf)
        token = choose(logits, limits, rows.step)
        is_eos = limits.is_eos[token]
        moved = jnp.take_along_axis(following, token[:, None], axis=1)[:, 0]
        state = jnp.where(rows.is_done | is_eos, rows.state, moved)
        is_over = is_eos | tables.is_end[tables.state_start + state]
        is_writing = ~rows.is_done & ~is_eos
        found = Rows(
            cache=cache,
            token=jnp.where(is_writing, token, 0),
            position=rows.position + 1,
            state=state,
            is_done=rows.is_done | is_over | (remaining <= 1),
            is_finished=rows.is_finished | (~rows.is_done & is_over),
            written=rows.written.at[:, rows.step].set(jnp.where(is_writing, token, -1)),
            step=rows.step + 1,
        )
        return graph.placed(found, decoder.config)

    return jax.lax.while_loop(
        lambda rows: (rows.step < until) & ~rows.is_done.all(), write_one, rows
    )


def choose(
    logits: Float[Array, "batch width"], limits: Limits, step: Int[Array, ""]
) -> Int[Array, " batch"]:
    """The best token where the temperature is 0, else one drawn with the row's own key."""

    def draw(seed: Int[Array, ""], row: Float[Array, " width"]) -> Float[Array, " width"]:
        return jax.random.gumbel(jax.random.fold_in(jax.random.key(seed), step), row.shape)

    def noisy(logits: Float[Array, "batch width"]) -> Float[Array, "batch width"]:
        is_drawn = (limits.temperature > 0)[:, None]
        heat = jnp.where(is_drawn, limits.temperature[:, None], 1.0)
        return logits / heat + jnp.where(is_drawn, jax.vmap(draw)(limits.seed, logits), 0.0)

    # Random numbers for a whole vocabulary are dear on a CPU.
    scores = jax.lax.cond((limits.temperature > 0).any(), noisy, lambda same: same, logits)
    return scores.argmax(-1).astype(jnp.int32)
