"""Decoder weights from Hugging Face safetensors or from one GGUF file."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from safetensors import safe_open

from triax.models.adapters import add_lora, load_adapter, merge_lora, read_config
from triax.models.decoder import Decoder, DecoderConfig
from triax.models.decoder_sharding import state_shardings
from triax.models.gguf_file import GGUFFile

# What the config.json of a decoder's adapter names as its part.
ADAPTER_PART = "decoder"
_LEAVES = {"kernel": "weight", "scale": "weight", "embedding": "weight", "bias": "bias"}


def load_decoder(
    folder: Path, dtype: Any = jnp.float32, mesh: jax.sharding.Mesh | None = None
) -> tuple[Decoder, DecoderConfig]:
    """Reads a decoder from a model folder; no weight is initialised on the way.

    Args:
        folder: holds config.json with model.safetensors (or shards with their index), or one
            .gguf file.
        dtype: of the weights and of the computation.
        mesh: each weight goes from the file straight to its shares on these devices, split over
            the `model` axis; None puts all on the first device.

    Raises:
        FileNotFoundError: the folder holds neither.
        MeshError: the decoder cannot be split so.
        ValueError: the model is no decoder we compute, or weights are missing, left over or of
            another shape; the message names them.
    """
    folder = Path(folder)
    config, file = _open(folder)
    tensors = _safetensors(folder) if file is None else file.tensors()
    return _filled(abstract_decoder(config, dtype), tensors, config, folder, mesh), config


def read_decoder_config(folder: Path) -> DecoderConfig:
    """The shape of the decoder in a model folder; no weight is read. Raises as `load_decoder`."""
    return _open(Path(folder))[0]


def abstract_decoder(config: DecoderConfig, dtype: Any = jnp.float32) -> Decoder:
    """A decoder with shapes in the place of weights."""
    return nnx.eval_shape(lambda: Decoder(config, dtype=dtype, rngs=nnx.Rngs(0)))


def _open(folder: Path) -> tuple[DecoderConfig, GGUFFile | None]:
    """The configuration, and the GGUF file if the weights are in one."""
    if (folder / "config.json").is_file():
        config = json.loads((folder / "config.json").read_text("utf-8"))
        return DecoderConfig.from_hf(config), None
    found = sorted(folder.glob("*.gguf"))
    if len(found) != 1:
        raise FileNotFoundError(
            f"{folder} holds no config.json and {len(found)} .gguf files; a model folder has "
            "config.json and safetensors, or exactly one .gguf"
        )
    file = GGUFFile(found[0])
    return DecoderConfig.from_hf(file.config()), file


def apply_adapter(decoder: Decoder, folder: Path) -> dict[str, Any]:
    """Adds a trained adapter to the weights of its base; the decoder is as fast as before.

    Args:
        decoder: the base, changed in place.
        folder: has adapter.safetensors and config.json, as `adapters.save_adapter` writes them.

    Returns:
        The adapter's config: `base`, `rank`, `layers` and `assignments`.

    Raises:
        AdapterError: the adapter is of another part, or of a decoder of another shape.
    """
    config = read_config(folder, ADAPTER_PART)
    add_lora(decoder, config["rank"], nnx.Rngs(0), config["layers"])
    load_adapter(folder, decoder, nnx.LoRAParam)
    merge_lora(decoder)
    return config


def hf_name(path: tuple[Any, ...]) -> str:
    """The published name of the weight at a path of `Decoder`'s state."""
    *modules, leaf = (str(part) for part in path)
    name = ".".join([*modules, _LEAVES[leaf]])
    return name if modules[0] == "lm_head" else f"model.{name}"


def _filled(
    abstract: Decoder,
    tensors: Iterator[tuple[str, np.ndarray]],
    config: DecoderConfig,
    folder: Path,
    mesh: jax.sharding.Mesh | None,
) -> Decoder:
    """Puts arrays where `abstract` has shapes only."""
    graphdef, state = nnx.split(abstract)
    flat = dict(nnx.to_flat_state(state))
    places = {} if mesh is None else dict(nnx.to_flat_state(state_shardings(state, config, mesh)))
    wanted = {hf_name(path): path for path in flat}
    extra, misshaped = [], []
    for name, array in tensors:
        if name not in wanted:
            if not _is_spare(name, config):
                extra.append(name)
            continue
        path = wanted.pop(name)
        if path[-1] == "kernel":
            array = array.T
        if array.shape != flat[path].shape:
            misshaped.append(f"{name} {array.shape}, expected {flat[path].shape} (as [in, out])")
            continue
        kind = flat[path].dtype
        if mesh is None:
            placed = jnp.array(array, kind)
        else:
            # From the host each device gets its own share, and no device ever holds the whole.
            placed = jax.device_put(np.asarray(array, kind), places[path].get_value())
        flat[path] = flat[path].replace(placed)
    faults = {"missing": sorted(wanted), "not known": sorted(extra), "of another shape": misshaped}
    if any(faults.values()):
        said = "; ".join(f"{kind}: {_few(names)}" for kind, names in faults.items() if names)
        raise ValueError(
            f"the weights in {folder} do not fit their configuration. {said}. Use the config.json "
            "that was published with these weights"
        )
    return nnx.merge(graphdef, nnx.from_flat_state(flat.items()))


def _is_spare(name: str, config: DecoderConfig) -> bool:
    """Whether a weight may stand in a file unused: a tied head's copy, or a computed buffer."""
    return name.endswith("rotary_emb.inv_freq") or (
        name == "lm_head.weight" and config.tie_embeddings
    )


def _few(names: list[str]) -> str:
    more = f" and {len(names) - 8} more" if len(names) > 8 else ""
    return ", ".join(names[:8]) + more


def _safetensors(folder: Path) -> Iterator[tuple[str, np.ndarray]]:
    """Names and arrays of all shards, one at a time, on the host."""
    index = folder / "model.safetensors.index.json"
    if index.is_file():
        shards = sorted(set(json.loads(index.read_text("utf-8"))["weight_map"].values()))
    else:
        shards = ["model.safetensors"]
    for shard in shards:
        if not (folder / shard).is_file():
            raise FileNotFoundError(f"{folder} has no {shard}; fetch the model again")
        with safe_open(folder / shard, framework="numpy") as file:
            for name in file.keys():
                yield name, file.get_tensor(name)
