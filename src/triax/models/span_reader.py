"""An extractive reader: where in a passage the answer of a query stands, or that it is not there.

The answer is one choice among all spans of at most `MAX_SPAN` tokens and three verdicts: not here,
yes, no. A span's score is a biaffine form of its two ends (Dozat and Manning 2017, section 3.2; for
spans Yu et al. 2020, section 3), so that the end of one mention does not go with the start of
another, as it can where both ends are chosen apart (Devlin et al. 2019, section 4.3). As in
EfficientRAG's labeler (Zhuang et al. 2024, section 3.2) one encoder reads query and chunk together.
"""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from flax import nnx
from jaxtyping import Array, Bool, Float, Int

from triax.models.adapters import add_lora
from triax.models.encoder import TransformerEncoder

# Verdicts, in this order: none of the passage's spans answers, the answer is yes, it is no.
NOT_HERE, YES, NO = range(3)
MAX_SPAN = 24  # tokens of the longest answer
_PAIR_WIDTH = 64
_HEADS = ("ends_head", "first_head", "last_head", "length_bias", "verdict_head")
TRAINABLE = nnx.Any(nnx.LoRAParam, *map(nnx.PathContains, _HEADS))


@dataclass(frozen=True, slots=True)
class SpanScores:
    """Scores of all answers of a row; float32, minus infinity where no answer may stand.

    `verdicts` are not here, yes, no. `spans[b, i, w]` is the span of tokens i to i + w, both in.
    """

    verdicts: Float[Array, "batch 3"]
    spans: Float[Array, "batch length span"]

    @property
    def flat(self) -> Float[Array, "batch choices"]:
        """Verdicts and then spans as one axis, over which the answer is one choice."""
        return jnp.concatenate([self.verdicts, self.spans.reshape(len(self.spans), -1)], axis=1)


jax.tree_util.register_dataclass(SpanScores, ["verdicts", "spans"], [])


class SpanReader(nnx.Module):
    """A text encoder with a score for each span, and for each verdict at the first token."""

    def __init__(self, encoder: TransformerEncoder, *, rngs: nnx.Rngs):
        """Fresh heads above an encoder."""
        width = encoder.config.width
        init = nnx.initializers.normal(0.02)
        self.encoder = encoder
        self.ends_head = nnx.Linear(width, 2, kernel_init=init, rngs=rngs)
        self.first_head = nnx.Linear(width, _PAIR_WIDTH, kernel_init=init, rngs=rngs)
        self.last_head = nnx.Linear(width, _PAIR_WIDTH, kernel_init=init, rngs=rngs)
        self.length_bias = nnx.Param(jnp.zeros(MAX_SPAN))
        self.verdict_head = nnx.Linear(width, 3, kernel_init=init, rngs=rngs)

    def __call__(
        self,
        ids: Int[Array, "batch length"],
        mask: Bool[Array, "batch length"],
        token_types: Int[Array, "batch length"],
    ) -> SpanScores:
        """Scores rows of `[CLS] query [SEP] passage [SEP]`.

        Args:
            ids: token ids.
            mask: True at tokens.
            token_types: 1 from the first token of the passage to the last [SEP], else 0.
        """
        hidden = self.encoder(ids, mask, token_types if self._has_types else None)
        ends = self.ends_head(hidden).astype(jnp.float32)
        first = self.first_head(hidden).astype(jnp.float32)
        last = self.last_head(hidden).astype(jnp.float32)
        pairs = jnp.einsum("bid,bjd->bij", first, last) * _PAIR_WIDTH**-0.5
        spans = _banded(pairs + ends[:, :, None, 0] + ends[:, None, :, 1], MAX_SPAN)
        # Tokens of the passage but not the [SEP] behind it.
        after = jnp.pad(token_types[:, 1:], ((0, 0), (0, 1)))
        allowed = (token_types > 0) & (after > 0) & mask
        both = _banded(allowed[:, :, None] & allowed[:, None, :], MAX_SPAN)
        lowest = jnp.finfo(jnp.float32).min
        spans = jnp.where(both, spans + self.length_bias[...].astype(jnp.float32), lowest)
        return SpanScores(self.verdict_head(hidden[:, 0]).astype(jnp.float32), spans)

    @property
    def _has_types(self) -> bool:
        return bool(self.encoder.config.num_token_types)


def _banded(square: Array, width: int) -> Array:
    """[batch, i, w] = square[batch, i, i + w], zero beyond the edge.

    Rows are shifted by one place each through padding and reshaping, which is faster than a gather.
    """
    batch, length, _ = square.shape
    wide = jnp.pad(square, ((0, 0), (0, 0), (0, width))).reshape(batch, length * (length + width))
    shifted = jnp.pad(wide, ((0, 0), (0, length))).reshape(batch, length, length + width + 1)
    return shifted[:, :, :width]


def build_reader(encoder: TransformerEncoder, rank: int, seed: int = 0) -> SpanReader:
    """A reader over an encoder, with adapters in it: as it is before training and for loading."""
    rngs = nnx.Rngs(jax.random.key(seed))
    add_lora(encoder, rank, rngs)
    return SpanReader(encoder, rngs=rngs)


def marginal_loss(
    scores: Float[Array, "batch places"], gold: Bool[Array, "batch places"]
) -> Float[Array, " batch"]:
    """Minus the log probability that falls on any of the gold places (Clark and Gardner 2018)."""
    lowest = jnp.finfo(jnp.float32).min
    chosen = jax.nn.logsumexp(jnp.where(gold, scores, lowest), axis=1)
    return jax.nn.logsumexp(scores, axis=1) - chosen


def reader_config(base: str, rank: int, **more: Any) -> dict[str, Any]:
    """What config.json of a saved reader says."""
    return {"part": "span_reader", "base": base, "rank": rank, **more}
