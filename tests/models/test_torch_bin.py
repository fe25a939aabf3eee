import os
import pickle
import zipfile
from collections import OrderedDict

import numpy as np
import pytest

from triax.models.torch_bin import load_torch_bin

torch = pytest.importorskip("torch")


@pytest.mark.parametrize(
    "dtype", ["float32", "float16", "bfloat16", "float64", "int64", "int32", "uint8", "bool"]
)
def test_tensors_equal_torch(tmp_path, dtype):
    whole = (torch.arange(24).reshape(2, 3, 4) % 5).to(getattr(torch, dtype))
    state = OrderedDict(
        whole=whole,
        turned=whole.permute(2, 0, 1),
        part=whole[1, 1:, ::2],
        scalar=whole[1, 2, 3],
        none=whole[:0],
        parameter=torch.nn.Parameter(whole, requires_grad=False),
    )
    torch.save(state, tmp_path / "m.bin")
    found = load_torch_bin(tmp_path / "m.bin")
    assert list(found) == list(state)
    for name, tensor in state.items():
        assert found[name].dtype.name == dtype
        np.testing.assert_array_equal(found[name].astype(float), tensor.double().numpy())


def test_the_state_dict_of_a_module(tmp_path):
    module = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.LayerNorm(2))
    torch.save(module.state_dict(), tmp_path / "m.bin")
    found = load_torch_bin(tmp_path / "m.bin")
    np.testing.assert_array_equal(found["0.weight"], module[0].weight.detach().numpy())


def write(path, payload: bytes, storage: bytes = b""):
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("archive/data.pkl", payload)
        archive.writestr("archive/data/0", storage)


class Command:
    def __init__(self, function, *arguments):
        self.made_of = function, arguments

    def __reduce__(self):
        return self.made_of


@pytest.mark.parametrize("function", [os.system, eval, getattr, OrderedDict.fromkeys])
def test_r24_code_in_the_file_is_refused_and_not_run(tmp_path, function):
    mark = tmp_path / "ran"
    write(tmp_path / "m.bin", pickle.dumps({"a": Command(function, f"touch {mark}")}))
    with pytest.raises(ValueError, match="refused"):
        load_torch_bin(tmp_path / "m.bin")
    assert not mark.exists()


@pytest.mark.parametrize("edit", [{"size": 5}, {"offset": 1}, {"stride": 2}, {"offset": -1}])
def test_r24_a_tensor_that_reaches_outside_its_storage_is_refused(tmp_path, edit):
    """Four float32 are stored; the description asks for more, which as_strided would read."""
    at = {"offset": 0, "size": 4, "stride": 1, **edit}

    class Pickler(pickle.Pickler):
        def persistent_id(self, thing):
            return ("storage", torch.FloatStorage, "0", "cpu", 4) if thing == "here" else None

    rebuild = Command(
        torch._utils._rebuild_tensor_v2,
        *("here", at["offset"], (at["size"],), (at["stride"],), False, OrderedDict()),
    )
    with (tmp_path / "p").open("wb") as stream:
        Pickler(stream, protocol=2).dump({"a": rebuild})
    write(tmp_path / "m.bin", (tmp_path / "p").read_bytes(), np.ones(4, np.float32).tobytes())
    with pytest.raises(ValueError, match="tensor"):
        load_torch_bin(tmp_path / "m.bin")


def test_the_old_format_and_other_contents_are_refused(tmp_path):
    torch.save({"a": torch.ones(2)}, tmp_path / "old.bin", _use_new_zipfile_serialization=False)
    with pytest.raises(ValueError, match="no zip archive"):
        load_torch_bin(tmp_path / "old.bin")
    torch.save({"epoch": 3}, tmp_path / "more.bin")
    with pytest.raises(ValueError, match="more than tensors"):
        load_torch_bin(tmp_path / "more.bin")
    with zipfile.ZipFile(tmp_path / "none.bin", "w") as archive:
        archive.writestr("readme", "")
    with pytest.raises(ValueError, match="0 data.pkl"):
        load_torch_bin(tmp_path / "none.bin")
