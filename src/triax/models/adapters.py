"""Low-rank adapters: put into a model, merged into its weights, kept in files.

LoRA (Hu et al. 2022, section 4.1): a linear layer `x W` becomes `x W + x A B`, where A [in, rank]
and B [rank, out] are trained and W is not. B starts at 0, so that nothing changes at first. The
scale alpha / rank of the paper is left to the learning rate (it is 1 here).
"""

import hashlib
import json
import os
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from jaxtyping import Array, Float
from safetensors.numpy import load_file, save_file

from triax.models import weights

SHIPPED = Path(__file__).parent / "shipped"
WEIGHTS_FILE = "adapter.safetensors"
CONFIG_FILE = "config.json"
# The names of the linear layers of `encoder` and of `decoder`.
ENCODER_LAYERS = ("query", "key", "value", "attention_output", "inner", "output")
DECODER_LAYERS = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")


class AdapterError(ValueError):
    """An adapter does not fit its model, or is not there."""


@jax.custom_vjp
def _low_rank(
    x: Float[Array, "*rows inputs"], a: Float[Array, "inputs rank"], b: Float[Array, "rank outputs"]
) -> Float[Array, "*rows outputs"]:
    """x A B."""
    return x @ a @ b


def _low_rank_forward(x: Array, a: Array, b: Array) -> tuple[Array, tuple[Array, ...]]:
    reduced = x @ a
    return reduced @ b, (x, reduced, a, b)


def _low_rank_backward(kept: tuple[Array, ...], slope: Array) -> tuple[Array, Array, Array]:
    x, reduced, a, b = kept
    narrow = slope @ b.T
    sum_rows = (((0,), (0,)), ((), ()))
    flat = [one.reshape(-1, one.shape[-1]) for one in (x, reduced, slope, narrow)]
    slope_a = jax.lax.dot_general(flat[0], flat[3], sum_rows)
    # The wide matrix first, and no transpose that XLA could draw into the product: on CPUs it would
    # write the wide slope down a second time, transposed, with all that leads to it computed again.
    slope_b = jax.lax.optimization_barrier(jax.lax.dot_general(flat[2], flat[1], sum_rows)).T
    return narrow @ a.T, slope_a, slope_b


_low_rank.defvjp(_low_rank_forward, _low_rank_backward)


class LowRankAdapted(nnx.LoRA):
    """`nnx.LoRA` with a backward pass that costs a CPU about half (bench/training_speed.py)."""

    def __call__(self, x: Array, **kwargs: Any) -> Array:
        """base(x) + x A B."""
        x, a, b = self.promote_dtype((x, self.lora_a[...], self.lora_b[...]), dtype=self.dtype)
        return self.base_module(x, **kwargs) + _low_rank(x, a, b)


def add_lora(
    module: nnx.Module, rank: int, rngs: nnx.Rngs, names: Collection[str] = ENCODER_LAYERS
) -> int:
    """Puts LoRA beside every `nnx.Linear` below `module` whose attribute name is in `names`.

    The module is changed in place; its own weights keep their values, under `base_module`.

    Returns:
        How many layers got one.

    Raises:
        AdapterError: there is no such layer, or the rank is not positive.
    """
    if rank < 1:
        raise AdapterError(f"the rank of an adapter is {rank}, expected 1 or more")
    count = 0
    for parent, name in _linears(module, nnx.Linear, names):
        base = getattr(parent, name)
        adapted = LowRankAdapted(
            base.in_features,
            rank,
            base.out_features,
            base_module=base,
            dtype=base.dtype,
            rngs=rngs,
        )
        setattr(parent, name, adapted)
        count += 1
    if not count:
        raise AdapterError(f"no linear layer of the model is named one of {sorted(names)}")
    return count


def merge_lora(module: nnx.Module) -> int:
    """Adds A B to the weights and takes the adapters out: the same function at no extra cost.

    Returns:
        How many layers were merged.
    """
    count = 0
    for parent, name in _linears(module, LowRankAdapted, None):
        adapted = getattr(parent, name)
        base = adapted.base_module
        product = adapted.lora_a[...].astype(jnp.float32) @ adapted.lora_b[...].astype(jnp.float32)
        kernel = base.kernel[...]
        merged = (kernel + product).astype(kernel.dtype)
        if isinstance(kernel.sharding, jax.sharding.NamedSharding):
            # What is split over devices stays split as it was.
            merged = jax.device_put(merged, kernel.sharding)
        base.kernel[...] = merged
        setattr(parent, name, base)
        count += 1
    return count


def _linears(
    module: nnx.Module, kind: type[nnx.Module], names: Collection[str] | None
) -> list[tuple[Any, str]]:
    """(parent, attribute) of every child of this kind; listed first, as the tree is changed."""
    found = []
    for _, parent in nnx.iter_modules(module):
        if isinstance(parent, nnx.LoRA):
            continue
        for name, child in vars(parent).items():
            if type(child) is kind and (names is None or name in names):
                found.append((parent, name))
    return found


def save_adapter(
    folder: Path, model: nnx.Module, trainable: Any, config: Mapping[str, Any]
) -> Path:
    """Writes what was trained: `adapter.safetensors` in float16 and `config.json`.

    Args:
        folder: is made where it is not there.
        model: has the trained parameters.
        trainable: the nnx filter that tells them from the frozen ones.
        config: must say what `load` needs to build the same model (base, rank, sizes).
    """
    folder.mkdir(parents=True, exist_ok=True)
    tensors = {
        name: np.asarray(value).astype(np.float16) for name, value in _flat(model, trainable)
    }
    _write(folder / WEIGHTS_FILE, lambda path: save_file(tensors, path))
    text = json.dumps(dict(config), indent=2, ensure_ascii=False, sort_keys=True) + "\n"
    _write(folder / CONFIG_FILE, lambda path: path.write_text(text, "utf-8"))
    return folder


def load_adapter(folder: Path, model: nnx.Module, trainable: Any) -> None:
    """Reads `adapter.safetensors` into a model that was built as the trained one was.

    Raises:
        AdapterError: names or shapes differ; the message says which.
    """
    tensors = load_file(folder / WEIGHTS_FILE)
    expected = dict(_flat(model, trainable))
    missing, extra = sorted(expected.keys() - tensors.keys()), sorted(tensors.keys() - expected)
    if missing or extra:
        raise AdapterError(
            f"{folder / WEIGHTS_FILE} does not fit the model: it lacks {missing[:3]} and has "
            f"{extra[:3]} too many ({len(missing)} and {len(extra)} in all); build the model "
            f"with the settings in {CONFIG_FILE}"
        )
    for name, value in expected.items():
        if tensors[name].shape != value.shape:
            raise AdapterError(
                f"{name} in {folder / WEIGHTS_FILE} has shape {tensors[name].shape}, the model "
                f"has {value.shape}"
            )
    state = nnx.state(model, trainable)
    flat = nnx.to_flat_state(state)
    for path, variable in flat:
        name = _name(path)
        variable[...] = jnp.asarray(tensors[name], variable[...].dtype)
    nnx.update(model, state)


def read_config(folder: Path, part: str) -> dict[str, Any]:
    """The config.json of an adapter, which must be of this part.

    Raises:
        AdapterError: it is of another part.
    """
    config = json.loads((folder / CONFIG_FILE).read_text("utf-8"))
    if config.get("part") != part:
        raise AdapterError(f"{folder} holds the part {config.get('part')!r}, expected {part!r}")
    return config


def adapter_folder(name: str) -> Path:
    """The folder of an adapter: a shipped one by its name, a path, or a hub name.

    Raises:
        AdapterError: it is none of these; the message lists the shipped ones.
    """
    shipped = SHIPPED / name
    if (shipped / WEIGHTS_FILE).is_file():
        return shipped
    if (Path(name).expanduser() / WEIGHTS_FILE).is_file():
        return Path(name).expanduser()
    if "/" in name and not Path(name).expanduser().exists():
        return weights.locate(name)
    known = sorted(path.parent.name for path in SHIPPED.glob(f"*/{WEIGHTS_FILE}"))
    raise AdapterError(
        f"no adapter {name!r}: it is neither a shipped one {known}, nor a folder with "
        f"{WEIGHTS_FILE}, nor a hub name"
    )


def fingerprint(name: str) -> str:
    """The sha256 of an adapter's weights and configuration, for manifests and run folders."""
    folder = adapter_folder(name)
    digest = hashlib.sha256()
    for file in (WEIGHTS_FILE, CONFIG_FILE):
        digest.update((folder / file).read_bytes())
    return digest.hexdigest()


def count_parameters(model: nnx.Module, trainable: Any) -> int:
    """How many numbers are trained."""
    return sum(value.size for _, value in _flat(model, trainable))


def _flat(model: nnx.Module, trainable: Any) -> list[tuple[str, Any]]:
    flat = nnx.to_flat_state(nnx.state(model, trainable))
    return [(_name(path), variable[...]) for path, variable in flat]


def _name(path: tuple[Any, ...]) -> str:
    return ".".join(str(part) for part in path)


def _write(path: Path, write: Any) -> None:
    """By way of a second file, so that a killed run leaves the old one whole."""
    beside = path.with_name(path.name + ".part")
    write(beside)
    beside.chmod(0o644)  # safetensors makes its files private
    os.replace(beside, path)
