"""Weights of BERT, RoBERTa and MPNet encoders, by their Hugging Face names."""

import json
import re
from collections.abc import Mapping
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

from triax.models.encoder import EncoderConfig, TransformerEncoder
from triax.models.torch_bin import load_torch_bin

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
_BERT_LAYER = {
    "query": "attention.self.query",
    "key": "attention.self.key",
    "value": "attention.self.value",
    "attention_output": "attention.output.dense",
    "attention_norm": "attention.output.LayerNorm",
    "inner": "intermediate.dense",
    "output": "output.dense",
    "output_norm": "output.LayerNorm",
}
_MPNET_LAYER = _BERT_LAYER | {
    "query": "attention.attn.q",
    "key": "attention.attn.k",
    "value": "attention.attn.v",
    "attention_output": "attention.attn.o",
    "attention_norm": "attention.LayerNorm",
}
_LEAF = {"kernel": "weight", "scale": "weight", "bias": "bias"}


def hf_name(path: str, model_type: str) -> str:
    """The Hugging Face name of one of our weights, e.g. `layers.3.query.kernel`."""
    if path in _TABLES:
        return _TABLES[path]
    _, layer, module, leaf = path.split(".")
    names = _MPNET_LAYER if model_type == "mpnet" else _BERT_LAYER
    return f"encoder.layer.{layer}.{names[module]}.{_LEAF[leaf]}"


def read_tensors(folder: Path) -> dict[str, np.ndarray]:
    """The tensors of model.safetensors (one file or several with an index) or pytorch_model.bin.

    Raises:
        FileNotFoundError: the folder has neither.
    """
    from safetensors.numpy import load_file

    if (index := folder / "model.safetensors.index.json").is_file():
        files = sorted(set(json.loads(index.read_text("utf-8"))["weight_map"].values()))
    else:
        files = ["model.safetensors"]
    if all((folder / name).is_file() for name in files):
        return {name: value for file in files for name, value in load_file(folder / file).items()}
    if (weights := folder / "pytorch_model.bin").is_file():
        return load_torch_bin(weights)
    found = sorted(path.name for path in folder.glob("*")) or "nothing"
    raise FileNotFoundError(
        f"{folder} has neither {', '.join(files)} nor pytorch_model.bin, only {found}"
    )


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
    tensors = {_PREFIX.sub("", name): value for name, value in tensors.items()}
    # Checkpoints converted from TensorFlow call the norms' weights so.
    renamed = {"LayerNorm.gamma": "LayerNorm.weight", "LayerNorm.beta": "LayerNorm.bias"}
    for old, new in renamed.items():
        tensors = {re.sub(re.escape(old) + "$", new, name): v for name, v in tensors.items()}
    graph, state = nnx.split(encoder)
    flat, missing, misshaped = {}, [], []
    for path, variable in nnx.to_flat_state(state):
        name = hf_name(".".join(map(str, path)), encoder.config.model_type)
        if name not in tensors:
            missing.append(name)
            continue
        value = np.asarray(tensors.pop(name), np.float32)
        value = value.T if path[-1] == "kernel" else value
        if value.shape != variable.shape:
            misshaped.append(f"{name} {value.shape}, expected {variable.shape}")
        flat[path] = variable.replace(jnp.asarray(value))
    extra = sorted(name for name in tensors if not _IGNORED.match(name))
    if missing or extra or misshaped:
        raise ValueError(
            f"{source} do not fit the {encoder.config.model_type} encoder of config.json: "
            f"missing {missing}, left over {extra}, misshaped {misshaped}"
        )
    return nnx.merge(graph, nnx.from_flat_state(flat))


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
    config = EncoderConfig.from_hf(json.loads((folder / "config.json").read_text("utf-8")))
    encoder = nnx.eval_shape(
        lambda: TransformerEncoder(config, jnp.dtype(dtype), rngs=nnx.Rngs(jax.random.key(0)))
    )
    return assign(encoder, read_tensors(folder), str(folder)), config
