"""An extractive reader: where in a passage the answer of a query stands, or that it is not there.

The start and the end of the answer are two distributions over the tokens of the passage and three
more places: not here, yes, no. The form is BERT's for SQuAD 2.0 (Devlin et al. 2019, section 4.3),
with the no-answer at the first token; yes and no are the two further answers of HotpotQA. As in
EfficientRAG's labeler (Zhuang et al. 2024, section 3.2) one encoder reads query and chunk together.
"""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from jaxtyping import Array, Bool, Float, Int

from triax.models.adapters import add_lora
from triax.models.encoder import TransformerEncoder

# Places of the two distributions that are no token of the passage: the first token stands for
# NOT_HERE, the two after the last token for YES and NO.
NUM_VERDICTS = 2
TRAINABLE = nnx.Any(nnx.LoRAParam, nnx.PathContains("span_head"), nnx.PathContains("verdict_head"))


@dataclass(frozen=True, slots=True)
class SpanScores:
    """Scores of both ends of the answer; float32, minus infinity where no answer may end.

    Columns: 0 is not here, 1 to length - 1 are tokens, length is yes, length + 1 is no.
    """

    start: Float[Array, "batch places"]
    end: Float[Array, "batch places"]


jax.tree_util.register_dataclass(SpanScores, ["start", "end"], [])


class SpanReader(nnx.Module):
    """A text encoder with a head for the two ends of a span, and one for yes and no."""

    def __init__(self, encoder: TransformerEncoder, *, rngs: nnx.Rngs):
        """Fresh heads above an encoder."""
        width = encoder.config.width
        init = nnx.initializers.normal(0.02)
        self.encoder = encoder
        self.span_head = nnx.Linear(width, 2, kernel_init=init, rngs=rngs)
        self.verdict_head = nnx.Linear(width, 2 * NUM_VERDICTS, kernel_init=init, rngs=rngs)

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
        spans = self.span_head(hidden).astype(jnp.float32)
        verdicts = self.verdict_head(hidden[:, 0]).astype(jnp.float32)
        lowest = jnp.finfo(jnp.float32).min
        # Tokens of the passage but not the [SEP] behind it; and the first token, for "not here".
        after = jnp.pad(token_types[:, 1:], ((0, 0), (0, 1)))
        allowed = ((token_types > 0) & (after > 0) & mask).at[:, 0].set(True)
        spans = jnp.where(allowed[..., None], spans, lowest)
        start = jnp.concatenate([spans[..., 0], verdicts[:, :NUM_VERDICTS]], axis=1)
        end = jnp.concatenate([spans[..., 1], verdicts[:, NUM_VERDICTS:]], axis=1)
        return SpanScores(start, end)

    @property
    def _has_types(self) -> bool:
        return bool(self.encoder.config.num_token_types)


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


@dataclass(frozen=True, slots=True)
class Candidate:
    """A possible answer of one row: places of both ends, and how far it is above "not here".

    `margin` is score(start) + score(end) - score(not here, start) - score(not here, end): the
    log of a ratio of probabilities.
    """

    start: int
    end: int
    margin: float


def best_spans(
    start: Float[np.ndarray, " places"],
    end: Float[np.ndarray, " places"],
    max_tokens: int = 24,
    count: int = 3,
) -> list[Candidate]:
    """The best spans of one row, best first; yes and no are spans of one place.

    Args:
        start: scores as in `SpanScores`.
        end: the same.
        max_tokens: longest span.
        count: how many at most.
    """
    length = len(start) - NUM_VERDICTS
    start, end = start.astype(np.float64), end.astype(np.float64)  # two forbidden ends overflow
    none = float(start[0] + end[0])
    tops = np.argsort(-start[1:length], kind="stable")[: 4 * count] + 1
    found: list[Candidate] = []
    for first in tops.tolist():
        window = end[first : min(first + max_tokens, length)]
        for place in np.argsort(-window, kind="stable")[:2].tolist():
            value = float(start[first] + window[place])
            found.append(Candidate(first, first + place, value - none))
    for place in range(length, length + NUM_VERDICTS):
        found.append(Candidate(place, place, float(start[place] + end[place]) - none))
    found = [one for one in found if one.margin > -1e30]
    return sorted(found, key=lambda one: -one.margin)[:count]


def reader_config(base: str, rank: int, **more: Any) -> dict[str, Any]:
    """What config.json of a saved reader says."""
    return {"part": "span_reader", "base": base, "rank": rank, **more}
