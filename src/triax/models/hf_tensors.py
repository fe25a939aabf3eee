"""Tensors by their Hugging Face names: read from a folder, put into a module."""

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar

import jax.numpy as jnp
import numpy as np
from flax import nnx

from triax.models.torch_bin import load_torch_bin

M = TypeVar("M", bound=nnx.Module)

# The modules of a BERT layer, by our names for them.
BERT_LAYER = {
    "query": "attention.self.query",
    "key": "attention.self.key",
    "value": "attention.self.value",
    "attention_output": "attention.output.dense",
    "attention_norm": "attention.output.LayerNorm",
    "inner": "intermediate.dense",
    "output": "output.dense",
    "output_norm": "output.LayerNorm",
}
_LEAF = {"kernel": "weight", "scale": "weight", "bias": "bias"}


def layer_name(path: str, modules: Mapping[str, str]) -> str:
    """The name of a layer's weight, e.g. of `layers.3.query.kernel`."""
    _, layer, module, leaf = path.split(".")
    return f"encoder.layer.{layer}.{modules[module]}.{_LEAF[leaf]}"


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


def fill(
    module: M,
    tensors: Mapping[str, np.ndarray],
    name_of: Callable[[str], str],
    ignored: re.Pattern[str],
    source: str,
    target: str,
) -> M:
    """A copy of `module` (whose weights may be abstract) with the given ones, as float32.

    Args:
        module: what shapes are expected.
        tensors: arrays by Hugging Face name; linear weights are [out, in], as torch keeps them.
        name_of: the Hugging Face name of one of our weights, e.g. of `layers.3.query.kernel`.
        ignored: matches names that may be left over.
        source: what an error calls the tensors.
        target: what an error calls the module.

    Raises:
        ValueError: weights are missing, left over or of another shape; all are named.
    """
    # Checkpoints converted from TensorFlow call the norms' weights so.
    renamed = {"LayerNorm.gamma": "LayerNorm.weight", "LayerNorm.beta": "LayerNorm.bias"}
    tensors = dict(tensors)
    for old, new in renamed.items():
        tensors = {re.sub(re.escape(old) + "$", new, name): v for name, v in tensors.items()}
    graph, state = nnx.split(module)
    flat, missing, misshaped = {}, [], []
    for path, variable in nnx.to_flat_state(state):
        name = name_of(".".join(map(str, path)))
        if name not in tensors:
            missing.append(name)
            continue
        value = np.asarray(tensors.pop(name), np.float32)
        value = value.T if path[-1] == "kernel" else value
        if value.shape != variable.shape:
            misshaped.append(f"{name} {value.shape}, expected {variable.shape}")
        flat[path] = variable.replace(jnp.asarray(value))
    extra = sorted(name for name in tensors if not ignored.match(name))
    if missing or extra or misshaped:
        raise ValueError(
            f"{source} do not fit {target}: missing {missing}, left over {extra}, "
            f"misshaped {misshaped}"
        )
    return nnx.merge(graph, nnx.from_flat_state(flat))
