"""A text encoder with a few outputs a question: the model of the router and of question types.

Source: R2Adapter, section 3.2: one encoder and two logits with a sigmoid each ("vanilla suffices",
"the graph suffices"), so that both sides can be good for one question. Question types take the same
head with one logit a kind, under a softmax.
"""

from typing import Any

import jax
import jax.numpy as jnp
from flax import nnx
from jaxtyping import Array, Bool, Float, Int, Key

from triax.models.adapters import add_lora
from triax.models.encoder import Pooling, TransformerEncoder, dropout, gelu, pool

HEADS = nnx.Any(nnx.PathContains("pooler"), nnx.PathContains("classifier"))
TRAINABLE = nnx.Any(nnx.LoRAParam, HEADS)


class ContextPooler(nnx.Module):
    """Dropout, a dense layer and GELU over one vector a row, as DeBERTa's classifiers have them."""

    def __init__(self, width: int, rate: float, *, rngs: nnx.Rngs):
        """Random weights; the published encoders come without it."""
        self.rate = rate
        self.dense = nnx.Linear(width, width, kernel_init=nnx.initializers.normal(0.02), rngs=rngs)

    def __call__(
        self, pooled: Float[Array, "batch width"], key: Key[Array, ""] | None = None
    ) -> Float[Array, "batch width"]:
        """What a classifier takes; a key switches dropout on."""
        return gelu(self.dense(dropout(pooled, self.rate, key)))


class QuestionClassifier(nnx.Module):
    """An encoder, a pooler over one vector a row, and some logits."""

    def __init__(
        self,
        encoder: TransformerEncoder,
        pooling: Pooling,
        rate: float,
        num_outputs: int = 2,
        *,
        rngs: nnx.Rngs,
    ):
        """Takes the encoder, how its rows become one vector, the rate of dropout, and how many
        logits.
        """
        width = encoder.config.width
        init = nnx.initializers.normal(0.02)
        self.encoder = encoder
        self.pooling = pooling
        self.rate = rate
        self.pooler = ContextPooler(
            width, getattr(encoder.config, "pooler_dropout", 0.0), rngs=rngs
        )
        self.classifier = nnx.Linear(width, num_outputs, kernel_init=init, rngs=rngs)

    def __call__(
        self,
        ids: Int[Array, "batch length"],
        mask: Bool[Array, "batch length"],
        key: Key[Array, ""] | None = None,
    ) -> Float[Array, "batch outputs"]:
        """Logits, float32.

        Args:
            ids: token ids of the questions.
            mask: True at tokens.
            key: switches dropout on.
        """
        keys = (None, None, None) if key is None else tuple(jax.random.split(key, 3))
        hidden = pool(self.encoder(ids, mask, None, keys[0]), mask, self.pooling)
        hidden = dropout(self.pooler(hidden, keys[1]), self.rate, keys[2])
        return self.classifier(hidden).astype(jnp.float32)


def build_classifier(
    encoder: TransformerEncoder,
    pooling: Pooling = "mean",
    rank: int | None = None,
    rate: float = 0.1,
    seed: int = 0,
    num_outputs: int = 2,
) -> QuestionClassifier:
    """A classifier with fresh heads, and with adapters in its encoder unless `rank` is None."""
    rngs = nnx.Rngs(jax.random.key(seed))
    if rank is not None:
        add_lora(encoder, rank, rngs)
    return QuestionClassifier(encoder, pooling, rate, num_outputs, rngs=rngs)


def head_config(part: str, base: str, rank: int | None, **more: Any) -> dict[str, Any]:
    """What config.json of a saved classifier says; `part` is what it is for."""
    return {"part": part, "base": base, "rank": rank, **more}
