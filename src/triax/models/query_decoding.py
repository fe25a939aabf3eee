"""Greedy writing of query triplets: a batch of questions in one compiled loop.

Each output is the best of those that the rules allow, so whatever the weights are, the outputs
parse. The loop ends when all rows have.
"""

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from jaxtyping import Array, Bool, Int

from triax.models.query_vocabulary import (
    KIND_END,
    QueryVocabulary,
    Source,
    WritingRules,
    WritingState,
    Written,
)
from triax.models.query_writer import Cache, QueryWriter

PLACES = (24, 32, 48, 96)
ROWS = (1, 8, 32)
_NEVER = -1e30


class QueryDecoder:
    """Writes with one model; compiled once for each shape that comes up."""

    def __init__(self, model: QueryWriter, vocabulary: QueryVocabulary, max_outputs: int = 96):
        """Takes a model, whose adapters may be merged or not.

        Raises:
            ValueError: the model has fewer positions than `max_outputs`, or another vocabulary.
        """
        if max_outputs > model.config.max_outputs or max_outputs < 8:
            raise ValueError(
                f"max_outputs is {max_outputs}; expected 8 to {model.config.max_outputs}, for "
                "which the model has positions"
            )
        if len(vocabulary) != model.config.vocab_size:
            raise ValueError(
                f"the vocabulary has {len(vocabulary)} tokens, the model {model.config.vocab_size}"
            )
        self.vocabulary = vocabulary
        self.max_outputs = max_outputs
        graph, state = nnx.split(model)
        # Plain arrays: to flatten a tree of nnx variables at each call costs more than a short row.
        self._leaves, tree = jax.tree.flatten(state)
        rules = WritingRules(
            jnp.asarray(vocabulary.kinds), jnp.asarray(vocabulary.placeholder_numbers), jnp
        )

        @jax.jit
        def run(
            leaves: list[Array],
            ids: Array,
            mask: Array,
            copyable: Array,
            word: Array,
        ) -> Array:
            rebuilt = nnx.merge(graph, jax.tree.unflatten(tree, leaves))
            return write_greedily(rebuilt, rules, ids, mask, copyable, word, max_outputs)

        self._run = run

    def write(self, sources: Sequence[Source]) -> list[Written]:
        """The query triplets of each question, in order.

        Raises:
            ValueError: a question has more pieces than the longest shape, or none.
        """
        found: list[Written | None] = [None] * len(sources)
        order = sorted(range(len(sources)), key=lambda n: len(sources[n].ids))
        start = 0
        while start < len(order):
            rows = next((r for r in reversed(ROWS) if r <= len(order) - start), ROWS[0])
            if 2 * (len(order) - start) > rows * 3 and rows < ROWS[-1]:
                rows = next(r for r in ROWS if r > rows)
            group = order[start : start + rows]
            for n, outputs in zip(group, self._outputs([sources[n] for n in group], rows)):
                found[n] = self.vocabulary.read(outputs, sources[n])
            start += len(group)
        return [written for written in found if written is not None]

    def _outputs(self, sources: Sequence[Source], rows: int) -> list[list[int]]:
        arrays = pad_sources(sources, rows, PLACES)
        return np.asarray(self._run(self._leaves, *arrays)).tolist()


def write_greedily(
    model: QueryWriter,
    rules: WritingRules,
    ids: Int[Array, "rows places"],
    mask: Bool[Array, "rows places"],
    copyable: Bool[Array, "rows places"],
    starts_word: Bool[Array, "rows places"],
    max_outputs: int,
) -> Int[Array, "rows outputs"]:
    """The outputs of each row; after its end come more ends. Traced by jit."""
    rows = ids.shape[0]
    memory = model.read(ids, mask, copyable)
    start = rules.start(rows, ids.shape[1])
    outputs = jnp.full((rows, max_outputs), KIND_END, jnp.int32)

    def going(carry: tuple[Array, WritingState, Cache, Array]) -> Array:
        return (carry[0] < max_outputs) & jnp.any(carry[1].field != 3)

    def body(
        carry: tuple[Array, WritingState, Cache, Array],
    ) -> tuple[Array, WritingState, Cache, Array]:
        n, state, cache, outputs = carry
        logits, cache = model.step(memory, cache, state.last, n)
        allowed = rules.allowed(state, starts_word, copyable, max_outputs - n)
        best = jnp.argmax(jnp.where(allowed, logits, _NEVER), axis=-1).astype(jnp.int32)
        outputs = outputs.at[:, n].set(best)
        return n + 1, rules.step(state, best), cache, outputs

    carry = (jnp.int32(0), start, model.empty_cache(rows, max_outputs), outputs)
    return jax.lax.while_loop(going, body, carry)[3]


def pad_sources(
    sources: Sequence[Source], rows: int, widths: Sequence[int]
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Ids, mask, copyable and starts-a-word of some questions, each [rows, width].

    Raises:
        ValueError: a question has more pieces than the largest width.
    """
    longest = max(len(source.ids) for source in sources)
    width = next((width for width in widths if width >= longest), None)
    if width is None:
        raise ValueError(
            f"a question has {longest} word pieces, at most {widths[-1]} are read; "
            "make the reader's max_length smaller"
        )
    ids = np.zeros((rows, width), np.int32)
    mask, copyable, word = (np.zeros((rows, width), bool) for _ in range(3))
    mask[:, 0] = True  # a row that only fills the batch must attend to something
    for row, source in enumerate(sources):
        size = len(source.ids)
        ids[row, :size] = source.ids
        mask[row, :size] = True
        copyable[row, :size] = source.copyable
        word[row, :size] = [not piece.startswith("##") for piece in source.pieces]
    return ids, mask, copyable, word
