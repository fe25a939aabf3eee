"""Weights of BERT, RoBERTa and MPNet encoders, by their Hugging Face names; any encoder by folder.

`load_encoder` is the way to all encoders, DeBERTa among them.
"""

import json
import re
from collections.abc import Mapping
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

from triax.models.deberta import MODEL_TYPE, DebertaConfig
from triax.models.deberta_params import load_deberta
from triax.models.encoder import EncoderConfig, TransformerEncoder
from triax.models.hf_tensors import BERT_LAYER, fill, layer_name, read_tensors

_PREFIX = re.compile(r"^(bert|roberta|mpnet)\.")
# Heads of pretraining, and a buffer that old versions stored.
_IGNORED = re.compile(r"^(pooler|cls|lm_head|vocab_transform|.*position_ids$|.*token_type_ids$)")
_TABLES = {
    "tokens.embedding": "embeddings.word_embeddings.weight",
    "positions.embedding": "embeddings.position_embeddings.weight",
    "token_types.embedding": "embeddings.token_type_embeddings.weight",
    "relative.embedding": "encoder.relative_attention_bias.weight",
    "norm.scale": "embeddings.LayerNorm.weight",
    "norm.bias": "embeddings.LayerNorm.bias",
}
_MPNET_LAYER = BERT_LAYER | {
    "query": "attention.attn.q",
    "key": "attention.attn.k",
    "value": "attention.attn.v",
    "attention_output": "attention.attn.o",
    "attention_norm": "attention.LayerNorm",
}


def hf_name(path: str, model_type: str) -> str:
    """The Hugging Face name of one of our weights, e.g. `layers.3.query.kernel`."""
    if path in _TABLES:
        return _TABLES[path]
    return layer_name(path, _MPNET_LAYER if model_type == "mpnet" else BERT_LAYER)


def assign(
    encoder: TransformerEncoder, tensors: Mapping[str, np.ndarray], source: str = "the weights"
) -> TransformerEncoder:
    """A copy of `encoder` (whose weights may be abstract) with the given ones, as float32.

    Args:
        encoder: what shapes are expected.
        tensors: arrays by Hugging Face name, with or without the prefix `bert.` and its kin.
        source: what an error calls them.

    Raises:
        ValueError: weights are missing, left over or of another shape; all are named.
    """
    kind = encoder.config.model_type
    tensors = {_PREFIX.sub("", name): value for name, value in tensors.items()}
    return fill(
        encoder,
        tensors,
        lambda path: hf_name(path, kind),
        _IGNORED,
        source,
        f"the {kind} encoder of config.json",
    )


def read_config(folder: Path | str) -> EncoderConfig:
    """The shape of the encoder in a folder; a `DebertaConfig` for DeBERTa.

    Raises:
        FileNotFoundError: config.json is not there.
        ValueError: the model is of another family, or uses an option that is not built here.
    """
    values = json.loads((Path(folder) / "config.json").read_text("utf-8"))
    kind = DebertaConfig if values.get("model_type") == MODEL_TYPE else EncoderConfig
    return kind.from_hf(values)


def load_encoder(
    folder: Path | str, dtype: jnp.dtype | type | str = jnp.float32
) -> tuple[TransformerEncoder, EncoderConfig]:
    """Loads an encoder from a folder with config.json and weights.

    Args:
        folder: as `save_pretrained` writes it.
        dtype: of the computation; the weights stay float32.

    Raises:
        FileNotFoundError: config.json or the weights are not there.
        ValueError: the model is of another family, or the weights do not fit it.
    """
    folder = Path(folder)
    config = read_config(folder)
    if isinstance(config, DebertaConfig):
        return load_deberta(folder, dtype)
    encoder = nnx.eval_shape(
        lambda: TransformerEncoder(config, jnp.dtype(dtype), rngs=nnx.Rngs(jax.random.key(0)))
    )
    return assign(encoder, read_tensors(folder), str(folder)), config
