"""What is inside a checkpoint file: a tree of tensors and plain values that loads without running code.

The file is an ordinary `torch.save` archive, readable with `torch.load(path, weights_only=True)`. Arrays and
bytes are stored as tagged uint8 tensors, because the restricted unpickler of older torch versions knows
neither.
"""

from __future__ import annotations

import io
import math
import pickle
import zipfile
from collections.abc import Mapping
from typing import IO, Any, TypeAlias, cast

import numpy as np
import torch

from warpzone.errors import CheckpointError
from warpzone.watch.durable import PendingFile

Tree: TypeAlias = Any
"""dict, list, tuple, bool, int, float, str, bytes, None, torch.Tensor or np.ndarray, nested at will."""

_TAG = "__warpzone__"
_ZIP_MAGIC = b"PK\x03\x04"
_MAX_DEPTH = 64
# What torch, zipfile and numpy raise for malformed bytes.
_UNREADABLE = (
    *(pickle.UnpicklingError, zipfile.BadZipFile, EOFError, OSError, RuntimeError, ImportError, MemoryError),
    *(ArithmeticError, AssertionError, AttributeError, LookupError, TypeError, ValueError),
)


def write_tree(tree: Tree, pending: PendingFile) -> None:
    """Serialise `tree` into `pending`. Raises CheckpointError for a value the format does not hold."""
    sink = _Sink(pending)
    try:
        torch.save(_encode(tree, "state"), cast(IO[bytes], sink))
    except RuntimeError:
        if sink.failure is None:
            raise
    if sink.failure is not None:
        raise sink.failure


def read_tree(file: IO[bytes], name: str) -> Tree:
    """The tree in an open file. Anything `write_tree` does not write raises CheckpointError and runs no code."""
    _check_archive(file, name)
    file.seek(0)
    try:
        return _decode(torch.load(file, map_location="cpu", weights_only=True), "state", name)
    except CheckpointError:
        raise
    except _UNREADABLE as error:
        raise CheckpointError(
            f"{name} cannot be read as a checkpoint ({_first_line(error)}); delete it or choose another"
        ) from error


class _Sink:
    """Keeps the first failure and ignores later ones: torch's archive writer would replace it by its own."""

    def __init__(self, pending: PendingFile) -> None:
        self._pending = pending
        self.failure: BaseException | None = None

    def write(self, data: bytes) -> int:
        if self.failure is None:
            try:
                self._pending.write(data)
            except BaseException as error:
                self.failure = error
        return len(data)

    def flush(self) -> None:
        pass


def _check_archive(file: IO[bytes], name: str) -> None:
    """Pass only the plain zip layout to torch: older layouts are unsafe, and compression could hide a zip bomb."""
    file.seek(0)
    if file.read(4) != _ZIP_MAGIC:
        raise CheckpointError(f"{name} is not a checkpoint archive; delete it or choose another")
    size = file.seek(0, io.SEEK_END)
    try:
        with zipfile.ZipFile(file) as archive:
            entries = archive.infolist()
    except (zipfile.BadZipFile, ValueError, OSError, NotImplementedError, UnicodeDecodeError) as error:
        raise CheckpointError(
            f"{name} is damaged ({_first_line(error)}); delete it or choose another"
        ) from error
    stored = all(entry.compress_type == zipfile.ZIP_STORED for entry in entries)
    if not stored or sum(entry.file_size for entry in entries) > size:
        raise CheckpointError(f"{name} is damaged or not written by warpzone; delete it or choose another")


def _encode(value: Tree, where: str) -> Tree:
    if value is None or isinstance(value, bool | int | float | str):
        # Subclasses (enums, numpy scalars) would be pickled as themselves and refused on loading.
        return _plain_scalar(value)
    if isinstance(value, torch.Tensor):
        return _compact(value)
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray):
        return _encode_array(value, where)
    if isinstance(value, bytes | bytearray | memoryview):
        return {_TAG: "bytes", "data": _as_tensor(bytes(value))}
    if isinstance(value, Mapping):
        if _TAG in value:
            raise CheckpointError(f"{where} uses the reserved key {_TAG!r}; rename it")
        return {_encode_key(k, where): _encode(v, f"{where}[{k!r}]") for k, v in value.items()}
    if isinstance(value, list):
        return [_encode(v, f"{where}[{i}]") for i, v in enumerate(value)]
    if isinstance(value, tuple):
        return tuple(_encode(v, f"{where}[{i}]") for i, v in enumerate(value))
    raise CheckpointError(
        f"{where} is a {type(value).__name__}, which a checkpoint does not hold; save plain values"
    )


def _plain_scalar(value: bool | int | float | str | None) -> bool | int | float | str | None:
    for kind in (bool, int, float, str):
        if isinstance(value, kind):
            return kind(value)
    return value


def _encode_key(key: object, where: str) -> str | int:
    if isinstance(key, str) or (isinstance(key, int) and not isinstance(key, bool)):
        return key
    raise CheckpointError(f"{where} has a key of type {type(key).__name__}; keys are str or int")


def _compact(tensor: torch.Tensor) -> torch.Tensor:
    tensor = tensor.detach().cpu()
    if tensor.untyped_storage().nbytes() != tensor.numel() * tensor.element_size():
        # torch.save writes the whole storage, also for a small view of a large one.
        tensor = tensor.clone(memory_format=torch.contiguous_format)
    return tensor


def _encode_array(array: np.ndarray, where: str) -> Tree:
    if array.dtype.hasobject:
        raise CheckpointError(f"{where} is an array of Python objects, which a checkpoint does not hold")
    descr = np.lib.format.dtype_to_descr(array.dtype)
    return {
        _TAG: "ndarray",
        "dtype": descr if isinstance(descr, str) else [tuple(field) for field in descr],
        "shape": tuple(int(n) for n in array.shape),
        "data": _as_tensor(np.ascontiguousarray(array).tobytes()),
    }


def _as_tensor(data: bytes) -> torch.Tensor:
    return torch.frombuffer(bytearray(data), dtype=torch.uint8) if data else torch.empty(0, dtype=torch.uint8)


def _decode(value: Tree, where: str, name: str, depth: int = 0) -> Tree:
    if depth > _MAX_DEPTH:
        raise CheckpointError(f"{name} is nested too deeply to be a checkpoint; delete it or choose another")
    if value is None or type(value) in (bool, int, float, str, bytes):
        return value
    if isinstance(value, torch.Tensor):
        if value.layout is not torch.strided or value.device.type != "cpu":
            raise CheckpointError(f"{name} holds an unusual tensor at {where}; delete it or choose another")
        return value.detach()
    if isinstance(value, Mapping):
        if _TAG in value:
            return _decode_tagged(value, where, name)
        return {k: _decode(v, f"{where}[{k!r}]", name, depth + 1) for k, v in value.items()}
    if isinstance(value, list):
        return [_decode(v, f"{where}[{i}]", name, depth + 1) for i, v in enumerate(value)]
    if isinstance(value, tuple):
        return tuple(_decode(v, f"{where}[{i}]", name, depth + 1) for i, v in enumerate(value))
    raise CheckpointError(f"{name} holds a {type(value).__name__} at {where}; delete it or choose another")


def _decode_tagged(value: Mapping[Any, Any], where: str, name: str) -> bytes | np.ndarray:
    data = value.get("data")
    if not isinstance(data, torch.Tensor) or data.dtype != torch.uint8 or data.dim() != 1:
        raise CheckpointError(f"{name} is damaged at {where}; delete it or choose another")
    raw = data.contiguous().numpy().tobytes()
    if value[_TAG] == "bytes":
        return raw
    dtype, shape = np.lib.format.descr_to_dtype(value["dtype"]), tuple(int(n) for n in value["shape"])
    if value[_TAG] != "ndarray" or dtype.hasobject or dtype.itemsize * math.prod(shape) != len(raw):
        raise CheckpointError(f"{name} is damaged at {where}; delete it or choose another")
    return np.frombuffer(raw, dtype=dtype).reshape(shape).copy()


def _first_line(error: BaseException) -> str:
    text = str(error).strip() or type(error).__name__
    return text.splitlines()[0][:120]
