import re

import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from triax.models.hf_tensors import fill, layer_name, read_tensors


def fill_linear(tensors):
    linear = nnx.Linear(2, 3, rngs=nnx.Rngs(0))
    names = {"kernel": "dense.weight", "bias": "dense.bias"}
    return fill(linear, tensors, names.__getitem__, re.compile(r"^head\."), "the file", "a layer")


def test_linear_weights_are_turned_and_become_float32():
    weight = np.arange(6, dtype=np.float16).reshape(3, 2)
    tensors = {"dense.weight": weight, "dense.bias": np.ones(3), "head.x": np.zeros(1)}
    filled = fill_linear(tensors)
    assert filled.kernel[...].dtype == jnp.float32
    np.testing.assert_array_equal(filled(jnp.array([[1.0, 10.0]])), [[11.0, 33.0, 55.0]])
    assert len(tensors) == 3


def test_all_faults_are_named_in_one_error():
    with pytest.raises(ValueError) as caught:
        fill_linear({"dense.weight": np.zeros((2, 3)), "other": np.zeros(1)})
    assert str(caught.value) == (
        "the file do not fit a layer: missing ['dense.bias'], left over ['other'], "
        "misshaped ['dense.weight (3, 2), expected (2, 3)']"
    )


def test_names_of_layers():
    name = layer_name("layers.2.one.scale", {"one": "first.LayerNorm"})
    assert name == "encoder.layer.2.first.LayerNorm.weight"


def test_a_folder_without_weights_is_told(tmp_path):
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(FileNotFoundError, match=r"only \['config.json'\]"):
        read_tensors(tmp_path)
