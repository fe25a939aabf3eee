"""A text encoder with two independent outputs: does vanilla retrieval suffice, does the graph?

Source: R2Adapter, section 3.2: one encoder, two logits with a sigmoid each, so that both sides can
be good for one question.
"""

from typing import Any

import jax
import jax.numpy as jnp
from flax import nnx
from jaxtyping import Array, Bool, Float, Int, Key

from triax.models.adapters import add_lora
from triax.models.encoder import Pooling, TransformerEncoder, dropout, gelu, pool

VANILLA, GRAPH = range(2)
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


class RouteClassifier(nnx.Module):
    """An encoder, a pooler over one vector a row, and two logits."""

    def __init__(
        self, encoder: TransformerEncoder, pooling: Pooling, rate: float, *, rngs: nnx.Rngs
    ):
        """Takes the encoder, how its rows become one vector, and the rate of dropout."""
        width = encoder.config.width
        init = nnx.initializers.normal(0.02)
        self.encoder = encoder
        self.pooling = pooling
        self.rate = rate
        self.pooler = ContextPooler(
            width, getattr(encoder.config, "pooler_dropout", 0.0), rngs=rngs
        )
        self.classifier = nnx.Linear(width, 2, kernel_init=init, rngs=rngs)

    def __call__(
        self,
        ids: Int[Array, "batch length"],
        mask: Bool[Array, "batch length"],
        key: Key[Array, ""] | None = None,
    ) -> Float[Array, "batch 2"]:
        """Logits of "vanilla suffices" and "the graph suffices", float32.

        Args:
            ids: token ids of the questions.
            mask: True at tokens.
            key: switches dropout on.
        """
        keys = (None, None, None) if key is None else tuple(jax.random.split(key, 3))
        hidden = pool(self.encoder(ids, mask, None, keys[0]), mask, self.pooling)
        hidden = dropout(self.pooler(hidden, keys[1]), self.rate, keys[2])
        return self.classifier(hidden).astype(jnp.float32)


def build_router(
    encoder: TransformerEncoder,
    pooling: Pooling = "mean",
    rank: int | None = None,
    rate: float = 0.1,
    seed: int = 0,
) -> RouteClassifier:
    """A classifier with fresh heads, and with adapters in its encoder unless `rank` is None."""
    rngs = nnx.Rngs(jax.random.key(seed))
    if rank is not None:
        add_lora(encoder, rank, rngs)
    return RouteClassifier(encoder, pooling, rate, rngs=rngs)


def router_config(base: str, rank: int | None, **more: Any) -> dict[str, Any]:
    """What config.json of a saved router says."""
    return {"part": "router", "base": base, "rank": rank, **more}
