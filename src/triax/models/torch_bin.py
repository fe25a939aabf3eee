"""Reads tensors out of a pytorch_model.bin without torch and without running what it may carry.

The file is a zip with a pickle of tensor descriptions beside raw storages (torch >= 1.6). Only
the few names that a state dict needs are known to the reader; any other is refused (R24).
"""

import collections
import pickle
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

_STORAGES = {
    "FloatStorage": np.dtype(np.float32),
    "HalfStorage": np.dtype(np.float16),
    "BFloat16Storage": np.dtype(ml_dtypes.bfloat16),
    "DoubleStorage": np.dtype(np.float64),
    "LongStorage": np.dtype(np.int64),
    "IntStorage": np.dtype(np.int32),
    "ShortStorage": np.dtype(np.int16),
    "CharStorage": np.dtype(np.int8),
    "ByteStorage": np.dtype(np.uint8),
    "BoolStorage": np.dtype(np.bool_),
}


@dataclass(frozen=True)
class _Storage:
    """Stands for torch.FloatStorage and its kin inside the pickle."""

    dtype: np.dtype


def _tensor(storage: np.ndarray, offset: int, shape: Sequence[int], strides: Sequence[int], *_):
    """A strided view of a storage, copied; refuses one that reaches outside the storage."""
    if len(shape) != len(strides) or min((offset, *shape, *strides), default=0) < 0:
        raise pickle.UnpicklingError(f"tensor of shape {shape}, strides {strides}, offset {offset}")
    last = offset + sum((size - 1) * stride for size, stride in zip(shape, strides))
    if 0 in shape:
        return np.empty(shape, storage.dtype)
    if last >= storage.size:
        raise pickle.UnpicklingError(
            f"a tensor ends at element {last} of a storage of {storage.size}; the file is damaged"
        )
    steps = [stride * storage.itemsize for stride in strides]
    return np.lib.stride_tricks.as_strided(storage[offset:], shape, steps).copy()


def _parameter(data: np.ndarray, *_) -> np.ndarray:
    return data


class _StateDictUnpickler(pickle.Unpickler):
    """Knows the names of a state dict and no other."""

    def __init__(self, archive: zipfile.ZipFile, root: str):
        self._archive, self._root = archive, root
        super().__init__(archive.open(f"{root}data.pkl"))

    def find_class(self, module: str, name: str) -> Any:
        known = {
            ("torch._utils", "_rebuild_tensor_v2"): _tensor,
            ("torch._utils", "_rebuild_parameter"): _parameter,
            ("collections", "OrderedDict"): collections.OrderedDict,
        }
        if (module, name) in known:
            return known[module, name]
        if module == "torch" and name in _STORAGES:
            return _Storage(_STORAGES[name])
        raise pickle.UnpicklingError(f"refused {module}.{name}; a state dict has tensors only")

    def persistent_load(self, pid: Any) -> np.ndarray:
        _, storage, key, _, count = pid
        data = self._archive.read(f"{self._root}data/{key}")
        return np.frombuffer(data, storage.dtype, count)


def load_torch_bin(path: Path | str) -> dict[str, np.ndarray]:
    """Returns the tensors of a state dict by name.

    Raises:
        ValueError: the file has the format of torch < 1.6, or holds anything but tensors.
    """
    path = Path(path)
    if not zipfile.is_zipfile(path):
        raise ValueError(
            f"{path} is no zip archive (the format of torch 1.6 and later); convert it to "
            "safetensors"
        )
    with zipfile.ZipFile(path) as archive:
        pickles = [name for name in archive.namelist() if name.endswith("data.pkl")]
        if len(pickles) != 1:
            raise ValueError(f"{path} holds {len(pickles)} data.pkl; expected one state dict")
        try:
            state = _StateDictUnpickler(archive, pickles[0].removesuffix("data.pkl")).load()
        except (pickle.UnpicklingError, KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"{path}: {error}; convert it to safetensors") from error
    if not isinstance(state, dict) or not all(isinstance(v, np.ndarray) for v in state.values()):
        raise ValueError(f"{path} holds more than tensors by name; expected a state dict")
    return dict(state)
