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
from triax.models.encoder import Pooling, TransformerEncoder, dropout, pool

VANILLA, GRAPH = range(2)
HEADS = nnx.Any(nnx.PathContains("pooler"), nnx.PathContains("classifier"))
TRAINABLE = nnx.Any(nnx.LoRAParam, HEADS)


class RouteClassifier(nnx.Module):
    """An encoder, a dense layer with GELU over its pooled output, and two logits."""

    def __init__(
        self, encoder: TransformerEncoder, pooling: Pooling, rate: float, *, rngs: nnx.Rngs
    ):
        """Takes the encoder, how its rows become one vector, and the rate of dropout."""
        width = encoder.config.width
        init = nnx.initializers.normal(0.02)
        self.encoder = encoder
        self.pooling = pooling
        self.rate = rate
        self.pooler = nnx.Linear(width, width, kernel_init=init, rngs=rngs)
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
        keys = (None, None) if key is None else tuple(jax.random.split(key))
        hidden = pool(self.encoder(ids, mask, None, keys[0]), mask, self.pooling)
        hidden = jax.nn.gelu(self.pooler(hidden), approximate=False)
        return self.classifier(dropout(hidden, self.rate, keys[1])).astype(jnp.float32)


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
