"""DeBERTa-v3 in Flax, for inference and fine-tuning: an encoder with disentangled attention.

Sources: DeBERTa (He et al. 2021, section 3.1; the absolute positions of section 3.2 belong to the
head of pretraining and are not here) and DeBERTaV3 (He et al. 2023), whose published models have
logarithmic buckets of distances and one key and one query projection for content and positions.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from jaxtyping import Array, Bool, Float, Int, Key

from triax.models.encoder import (
    EncoderConfig,
    EncoderLayer,
    TransformerEncoder,
    check_heads,
    dropout,
    layer_norm,
    table,
    toeplitz,
)

MODEL_TYPE = "deberta-v2"  # what config.json says for version 3 too
# Option: (the value that is built here, what config.json means by its absence).
_BUILT = {
    "relative_attention": (True, False),
    "share_att_key": (True, False),
    "position_biased_input": (False, True),
    "norm_rel_ebd": ("layer_norm", "none"),
    "hidden_act": ("gelu", "gelu"),
    "pooler_hidden_act": ("gelu", "gelu"),
    "type_vocab_size": (0, 0),
    "conv_kernel_size": (0, 0),
}


@dataclass(frozen=True, slots=True)
class DebertaConfig(EncoderConfig):
    """The shape of a DeBERTa encoder.

    There are no absolute positions; `num_positions` is the longest row that it was made for.
    Distances are put into `position_buckets` buckets on each side, of which the farthest begins
    next to `max_distance`; 0 buckets means a table row for each distance below `max_distance`.
    `position_kinds` are the terms of the scores beside content to content: "c2p", "p2c" or both.
    """

    num_token_types: int = 0
    layer_norm_eps: float = 1e-7
    position_buckets: int = 256
    max_distance: int = 512
    position_kinds: tuple[str, ...] = ("c2p", "p2c")
    pooler_dropout: float = 0.0

    @classmethod
    def from_hf(cls, config: Mapping[str, Any]) -> "DebertaConfig":
        """Reads the object of a Hugging Face config.json.

        Raises:
            ValueError: the model is of another family, or uses an option that is not built here.
        """
        if config.get("model_type") != MODEL_TYPE:
            raise ValueError(f"model_type is {config.get('model_type')!r}, expected {MODEL_TYPE!r}")
        check_heads(config)
        width, heads = config["hidden_size"], config["num_attention_heads"]
        sizes = {"embedding_size": width, "pooler_hidden_size": width}
        sizes["attention_head_size"] = width // heads
        for key, (built, default) in _BUILT.items() | {(k, (v, v)) for k, v in sizes.items()}:
            found = config.get(key, default)
            if found != built:
                absent = "" if key in config else " (config.json does not say it)"
                raise ValueError(f"{key} is {found!r}{absent}, but only {built!r} is built here")
        kinds = config.get("pos_att_type") or []
        kinds = kinds.lower().split("|") if isinstance(kinds, str) else kinds
        kinds = tuple(sorted(kind.strip() for kind in kinds))
        if not {"c2p", "p2c"}.issuperset(kinds):
            raise ValueError(f"pos_att_type is {kinds}, but only 'c2p' and 'p2c' are built here")
        num_positions = config["max_position_embeddings"]
        given = config.get("max_relative_positions", -1)
        return cls(
            model_type=MODEL_TYPE,
            vocab_size=config["vocab_size"],
            width=width,
            num_layers=config["num_hidden_layers"],
            num_heads=heads,
            inner_width=config["intermediate_size"],
            num_positions=num_positions,
            layer_norm_eps=config.get("layer_norm_eps", 1e-7),
            dropout=config.get("hidden_dropout_prob", 0.1),
            attention_dropout=config.get("attention_probs_dropout_prob", 0.1),
            position_buckets=max(0, config.get("position_buckets", -1)),
            max_distance=given if given > 0 else num_positions,
            position_kinds=kinds,
            pooler_dropout=config.get("pooler_dropout", 0.0),
        )

    @property
    def span(self) -> int:
        """Rows of the position table on each side of distance 0."""
        return self.position_buckets or self.max_distance


def log_buckets(length: int, num_buckets: int, max_distance: int) -> Int[np.ndarray, " distances"]:
    """The signed bucket of each distance from -(length - 1) to length - 1.

    Up to `num_buckets // 2` a distance is its own bucket; from there buckets grow with the
    logarithm, so that `max_distance - 1` falls into the last one, `num_buckets - 1`.

    Raises:
        ValueError: there are distances beyond the small ones, but no room for them.
    """
    distance = np.arange(-(length - 1), length)
    half = num_buckets // 2
    if length - 1 <= half:
        return distance.astype(np.int32)
    if not 0 < half < max_distance - 1:
        raise ValueError(
            f"{num_buckets} buckets for distances below {max_distance} leave nothing to rows of "
            f"{length} tokens; expected 2 buckets or more, and fewer than twice the distances"
        )
    # float32, as torch computes it: a bucket border must fall on the same side.
    size = np.maximum(np.abs(distance), half).astype(np.float32)
    ratio = np.log(size / np.float32(half)) / np.log(np.float32((max_distance - 1) / half))
    far = np.sign(distance) * (half + np.ceil(ratio * np.float32(half - 1)))
    return np.where(np.abs(distance) <= half, distance, far).astype(np.int32)


def position_rows(length: int, config: DebertaConfig) -> Int[np.ndarray, " distances"]:
    """The rows of the position table for the distances -(length - 1) to length - 1, rising."""
    if config.position_buckets:
        found = log_buckets(length, config.position_buckets, config.max_distance)
    else:
        found = np.arange(-(length - 1), length)
    return np.clip(found + config.span, 0, 2 * config.span - 1).astype(np.int32)


def _spread(
    by_row: Float[Array, "rows width"], rows: Int[np.ndarray, " distances"]
) -> Float[Array, "distances width"]:
    """One vector per distance from those of the table's rows from `rows[0]` to `rows[-1]`.

    Near distances have rows of their own. Only where far ones share a row is there a look-up, of
    2 x length - 1 vectors for the whole batch; scores are never looked up, but shifted.
    """
    places = rows - rows[0]
    return by_row if np.array_equal(places, np.arange(len(by_row))) else by_row[places]


class DebertaLayer(EncoderLayer):
    """One block of `EncoderLayer` with disentangled attention (He et al. 2021, section 3.1)."""

    config: DebertaConfig

    def attend(
        self,
        x: Float[Array, "batch length width"],
        mask: Bool[Array, "batch length"],
        positions: Float[Array, "rows width"],
        key: Key[Array, ""] | None,
    ) -> Float[Array, "batch length width"]:
        """Content to content, content to position and position to content (equation 4).

        `positions` are the rows of the position table that `DebertaEncoder.relate` gives for this
        length. All three terms share one scale, and the projections of content and positions. As in
        the published code, position to content takes the distance i - j too, where equation 4 has
        j - i.
        """
        config = self.config
        keys = (None, None) if key is None else tuple(jax.random.split(key))
        split = (config.num_heads, config.width // config.num_heads)
        scale = (split[-1] * (1 + len(config.position_kinds))) ** -0.5
        query = self.query(x).reshape(*mask.shape, *split) * scale
        content = self.key(x).reshape(*mask.shape, *split)
        scores = jnp.einsum("bqhd,bkhd->bhqk", query, content, preferred_element_type=jnp.float32)
        positions = dropout(positions, config.dropout, keys[0])
        rows = position_rows(x.shape[1], config)
        if "c2p" in config.position_kinds:
            # Row i is query i: its keys j go from left to right, i - j from high to low.
            place = _spread(self.key(positions), rows)[::-1].reshape(-1, *split)
            terms = jnp.einsum("bqhd,rhd->bhqr", query, place, preferred_element_type=jnp.float32)
            scores += toeplitz(terms)
        if "p2c" in config.position_kinds:
            # Row j is key j: its queries i go from left to right, i - j from low to high.
            place = _spread(self.query(positions) * scale, rows).reshape(-1, *split)
            terms = jnp.einsum("bkhd,rhd->bhkr", content, place, preferred_element_type=jnp.float32)
            scores += toeplitz(terms).swapaxes(-1, -2)
        return self.mix(scores, self.value(x).reshape(*mask.shape, *split), mask, keys[1])


class DebertaEncoder(TransformerEncoder):
    """Token ids to one vector per token; called as any `TransformerEncoder`.

    Weights are float32; `dtype` is that of the computation, in which softmax and the statistics
    of LayerNorm stay float32.
    """

    config: DebertaConfig

    def __init__(
        self, config: DebertaConfig, dtype: jnp.dtype | type = jnp.float32, *, rngs: nnx.Rngs
    ):
        """Random weights, N(0, 0.02) as in BERT."""
        self.config = config
        dtype = jnp.dtype(dtype)
        self.tokens = table(config.vocab_size, config.width, dtype, rngs)
        self.norm = layer_norm(config, dtype, rngs)
        self.relative = table(2 * config.span, config.width, dtype, rngs)
        self.relative_norm = layer_norm(config, dtype, rngs)
        self.layers = nnx.List(
            DebertaLayer(config, dtype, rngs=rngs) for _ in range(config.num_layers)
        )

    def embed(
        self, ids: Int[Array, "batch length"], token_types: Int[Array, "batch length"] | None
    ) -> Float[Array, "batch length width"]:
        """Token vectors, normalised. There are no token types; they are not looked at."""
        return self.norm(self.tokens(ids))

    def relate(self, length: int) -> Float[Array, "rows width"]:
        """The vectors of the distances in rows of `length`, normalised: a part of one table.

        All layers share them (section 3.1), each with its own projections.
        """
        rows = position_rows(length, self.config)
        return self.relative_norm(self.relative.embedding[...][rows[0] : rows[-1] + 1])
