"""The best choices of a reader over many windows: padded, batched, on all devices of a mesh."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from jax.sharding import Mesh
from jaxtyping import Array, Float32, Int32

from triax.models.buckets import plan_batches
from triax.models.mesh import current_mesh, rows_spread
from triax.models.reading_windows import Window
from triax.models.span_reader import MAX_SPAN

BUCKETS = (32, 64, 96, 128, 160, 192, 256, 384, 512)
_IMPOSSIBLE = -1e30  # a span that is none has the lowest float32, or nearly
NUM_SPANS = 16  # the best spans of a window that are looked at


@dataclass(frozen=True, slots=True)
class RowScores:
    """Scores of the verdicts not here, yes, no; and the best spans, best first.

    A span covers the places `starts[n]` to `ends[n]` of the window, both in.
    """

    verdicts: Float32[np.ndarray, "3"]
    spans: Float32[np.ndarray, "_"]
    starts: Int32[np.ndarray, "_"]
    ends: Int32[np.ndarray, "_"]


def pad_windows(
    windows: Sequence[Window], rows: int, length: int, pad_id: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Token ids, mask and token types [rows, length] of some windows."""
    ids = np.full((rows, length), pad_id, np.int32)
    types = np.zeros((rows, length), np.int32)
    mask = np.zeros((rows, length), bool)
    for row, window in enumerate(windows):
        ids[row, : window.length] = window.ids
        mask[row, : window.length] = True
        types[row, window.first : window.length] = 1
    return ids, mask, types


class WindowScorer:
    """Runs a `SpanReader`; the state is an argument, so that training can validate with it."""

    def __init__(
        self,
        graph: Any,
        max_length: int,
        pad_id: int = 0,
        batch_tokens: int | None = None,
        mesh: Mesh | None = None,
    ):
        """Takes the graph of the model (`nnx.split`), the longest row that it reads, and how many
        tokens go through it at once. Rows are spread over the mesh, the current one if None.
        """
        self._buckets = (*(one for one in BUCKETS if one < max_length), max_length)
        self._pad_id = pad_id
        self._batch_tokens = batch_tokens or (2048 if jax.default_backend() == "cpu" else 65536)
        self.mesh = current_mesh() if mesh is None else mesh
        self._by_row = rows_spread(self.mesh)

        @jax.jit
        def forward(state: Any, ids: Array, mask: Array, types: Array) -> tuple[Array, ...]:
            scores = nnx.merge(graph, state)(ids, mask, types)
            spans = scores.spans.reshape(len(ids), -1)
            best, places = jax.lax.top_k(spans, min(NUM_SPANS, spans.shape[1]))
            starts, sizes = jnp.divmod(places, MAX_SPAN)
            return scores.verdicts, best, starts, starts + sizes

        self._forward: Callable[..., tuple[Array, ...]] = forward

    def __call__(
        self,
        state: Any,
        windows: Sequence[Window],
        progress: Callable[[int], None] | None = None,
    ) -> list[RowScores]:
        """The best choices of each window, in order."""
        found: list[RowScores | None] = [None] * len(windows)
        done = 0
        for batch in plan_batches(
            [window.length for window in windows],
            self._batch_tokens,
            self._buckets,
            self.mesh.size,
        ):
            members = [windows[place] for place in batch.positions]
            arrays = pad_windows(members, batch.rows, batch.length, self._pad_id)
            verdicts, best, starts, ends = (
                np.asarray(one)
                for one in self._forward(state, *jax.device_put(arrays, self._by_row))
            )
            for row, place in enumerate(batch.positions):
                kept = best[row] > _IMPOSSIBLE
                found[place] = RowScores(
                    verdicts[row], best[row, kept], starts[row, kept], ends[row, kept]
                )
            done += len(members)
            if progress is not None:
                progress(done)
        return [one for one in found if one is not None]
