"""Where the weights and the cache of a decoder lie on a mesh: tensor parallelism.

As Megatron-LM (Shoeybi et al. 2019, section 3) splits them, with XLA adding the collectives: the
projections into heads and into the feed-forward layer are split by their outputs, those out of
them by their inputs, so that a layer needs two sums over the `model` axis and no more; embedding
and head are split by the vocabulary, the cache by its heads. Where there are fewer key-value heads
than devices of the axis (or it does not divide them), each device holds all of these. A low-rank
adapter is split as the layer that it stands beside.
"""

from typing import Any

import jax
from flax import nnx
from jax.sharding import AbstractMesh, Mesh, NamedSharding, PartitionSpec

from triax.models.decoder import Decoder, DecoderConfig
from triax.models.mesh import MODEL, MeshError, replicated

_BY_OUTPUTS = ("q_proj", "k_proj", "v_proj", "gate_proj", "up_proj")
_BY_INPUTS = ("o_proj", "down_proj")
_WHOLE = PartitionSpec()
# Which axis of a weight is split, by what kind of layer it belongs to.
_SPLIT = {
    "outputs": {
        "kernel": PartitionSpec(None, MODEL),
        "bias": PartitionSpec(MODEL),
        "lora_b": PartitionSpec(None, MODEL),
    },
    "inputs": {"kernel": PartitionSpec(MODEL, None), "lora_a": PartitionSpec(MODEL, None)},
}


def check_split(config: DecoderConfig, mesh: Mesh | AbstractMesh) -> None:
    """Makes sure that the decoder can be split over the mesh.

    Raises:
        MeshError: its heads or its feed-forward layer cannot be shared equally.
    """
    size = mesh.shape.get(MODEL, 1)
    for what, number in (
        ("attention heads", config.num_heads),
        ("feed-forward columns", config.intermediate_size),
    ):
        if number % size:
            both = [
                one
                for one in range(1, config.num_heads + 1)
                if config.num_heads % one == 0 and config.intermediate_size % one == 0
            ]
            raise MeshError(
                f"mesh.model={size} cannot share the decoder's {number} {what} equally; make "
                f"mesh.model one of {both}"
            )


def state_shardings(tree: Any, config: DecoderConfig, mesh: Mesh | AbstractMesh) -> Any:
    """Where each array of a tree lies, told by the names on its path.

    Args:
        tree: the state of a `Decoder`, of a part of it, or anything that repeats its names, such
            as the moments of an optimizer; arrays or shapes.
        config: of the decoder.
        mesh: has a `model` axis, or everything is replicated.

    Returns:
        The same tree with a sharding in the place of each array.

    Raises:
        MeshError: the decoder cannot be split so.
    """
    check_split(config, mesh)

    def sharding(path: tuple[Any, ...], leaf: Any) -> NamedSharding:
        spec = weight_spec(_names(path), config, mesh)
        # A factored moment has the name of its weight and another shape.
        return NamedSharding(mesh, spec if getattr(leaf, "ndim", 0) >= len(spec) else _WHOLE)

    return jax.tree_util.tree_map_with_path(sharding, tree)


def weight_spec(
    names: tuple[str, ...], config: DecoderConfig, mesh: Mesh | AbstractMesh
) -> PartitionSpec:
    """How the weight with these names on its path is split."""
    size, leaf = mesh.shape.get(MODEL, 1), names[-1] if names else ""
    if size == 1:
        return _WHOLE
    if "embed_tokens" in names or "lm_head" in names:
        if config.vocab_size % size:
            return _WHOLE
        return PartitionSpec(MODEL, None) if "embed_tokens" in names else _SPLIT["outputs"][leaf]
    if config.num_kv_heads % size and ("k_proj" in names or "v_proj" in names):
        return _WHOLE
    if any(name in names for name in _BY_OUTPUTS):
        return _SPLIT["outputs"].get(leaf, _WHOLE)
    if any(name in names for name in _BY_INPUTS):
        return _SPLIT["inputs"].get(leaf, _WHOLE)
    return _WHOLE


def row_sharding(mesh: Mesh | AbstractMesh, rows: int) -> NamedSharding:
    """Where arrays lie whose first axis is so many rows: over the first axis of the mesh.

    Rows that it does not divide, such as a single one, are all on each device.
    """
    # Written as XLA writes it: for jit the same in more words is another sharding.
    axis = mesh.axis_names[0]
    is_shared = mesh.shape[axis] > 1 and rows % mesh.shape[axis] == 0
    return NamedSharding(mesh, PartitionSpec(axis) if is_shared else _WHOLE)


def cache_sharding(config: DecoderConfig, mesh: Mesh | AbstractMesh, batch: int) -> NamedSharding:
    """Where keys and values [batch, slots, kv_heads, head_dim] lie."""
    by_row, size = row_sharding(mesh, batch), mesh.shape.get(MODEL, 1)
    if size == 1 or config.num_kv_heads % size:
        return by_row
    return NamedSharding(mesh, PartitionSpec(*(by_row.spec or (None,)), None, MODEL))


def place_state(tree: Any, model: nnx.Module, mesh: Mesh) -> Any:
    """Puts the state of a model, or what repeats its names, on the devices of a mesh.

    That of a `Decoder` is split over the `model` axis; that of any other model, which is small,
    lies whole on each device. Arrays that lie there already are not copied.
    """
    if isinstance(model, Decoder):
        return jax.device_put(tree, state_shardings(tree, model.config, mesh))
    return jax.device_put(tree, replicated(mesh))


def mesh_of(tree: Any) -> Mesh | None:
    """The mesh that the arrays of a tree lie on: None on one device, or over several processes."""
    for leaf in jax.tree.leaves(tree):
        sharding = getattr(leaf, "sharding", None)
        if isinstance(sharding, NamedSharding) and isinstance(sharding.mesh, Mesh):
            mesh = sharding.mesh
            return mesh if mesh.size > 1 and not mesh.is_multi_process else None
    return None


def _names(path: tuple[Any, ...]) -> tuple[str, ...]:
    """The attributes on the path of a leaf, without the place of an array in its variable."""
    parts = (getattr(key, "key", getattr(key, "name", getattr(key, "idx", key))) for key in path)
    names = tuple(str(part) for part in parts)
    return names[:-1] if names and names[-1] in ("value", "raw_value") else names
