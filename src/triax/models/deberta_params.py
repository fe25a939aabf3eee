"""Weights of DeBERTa encoders, by their Hugging Face names."""

import json
import re
from collections.abc import Mapping
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

from triax.models.deberta import DebertaConfig, DebertaEncoder
from triax.models.hf_tensors import BERT_LAYER, fill, layer_name, read_tensors

_PREFIX = re.compile(r"^deberta\.")
# Heads of pretraining (replaced token detection, masked words) and of fine-tuning; the positions
# that only the pretraining head was given (He et al. 2021, section 3.2).
_IGNORED = re.compile(
    r"^(lm_predictions|mask_predictions|cls|lm_head|pooler|classifier|qa_outputs)\."
    r"|^embeddings\.position_(embeddings\.weight|ids)$"
)
_TABLES = {
    "tokens.embedding": "embeddings.word_embeddings.weight",
    "norm.scale": "embeddings.LayerNorm.weight",
    "norm.bias": "embeddings.LayerNorm.bias",
    "relative.embedding": "encoder.rel_embeddings.weight",
    "relative_norm.scale": "encoder.LayerNorm.weight",
    "relative_norm.bias": "encoder.LayerNorm.bias",
}
_LAYER = BERT_LAYER | {
    "query": "attention.self.query_proj",
    "key": "attention.self.key_proj",
    "value": "attention.self.value_proj",
}


def hf_name(path: str) -> str:
    """The Hugging Face name of one of our weights, e.g. `layers.3.query.kernel`."""
    return _TABLES[path] if path in _TABLES else layer_name(path, _LAYER)


def assign(
    encoder: DebertaEncoder, tensors: Mapping[str, np.ndarray], source: str = "the weights"
) -> DebertaEncoder:
    """A copy of `encoder` (whose weights may be abstract) with the given ones, as float32.

    Args:
        encoder: what shapes are expected.
        tensors: arrays by Hugging Face name, with or without the prefix `deberta.`.
        source: what an error calls them.

    Raises:
        ValueError: weights are missing, left over or of another shape; all are named.
    """
    tensors = {_PREFIX.sub("", name): value for name, value in tensors.items()}
    return fill(encoder, tensors, hf_name, _IGNORED, source, "the DeBERTa encoder of config.json")


def load_deberta(
    folder: Path | str, dtype: jnp.dtype | type | str = jnp.float32
) -> tuple[DebertaEncoder, DebertaConfig]:
    """Loads a DeBERTa encoder from a folder with config.json and weights.

    Args:
        folder: as `save_pretrained` writes it.
        dtype: of the computation; the weights stay float32.

    Raises:
        FileNotFoundError: config.json or the weights are not there.
        ValueError: the model is of another family, or the weights do not fit it.
    """
    folder = Path(folder)
    config = DebertaConfig.from_hf(json.loads((folder / "config.json").read_text("utf-8")))
    encoder = nnx.eval_shape(
        lambda: DebertaEncoder(config, jnp.dtype(dtype), rngs=nnx.Rngs(jax.random.key(0)))
    )
    return assign(encoder, read_tensors(folder), str(folder)), config
