"""Elements of constants where they are in files: mapped, and not copied.

    model.onnx    ModelProto > graph > initializer > raw_data
      ->
    a message without large raw_data, whose initializers name where it is in model.onnx instead, as
    those of models with external data name other files

So one way reads both, and a model of any size takes the memory of its graph. Files outside of the
folder of the model are not read. Source: ONNX, "External Data"; protobuf, "Encoding".
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx

from relax_mlir.errors import ModelError

LARGE = 1 << 16
"""Bytes of elements from which they are not read with the message."""

GRAPH, INITIALIZER, RAW_DATA = 7, 5, 9
"""Fields of a model, of a graph, and of a tensor."""
_LEN, _SIZES = 2, {1: 8, 5: 4}
"""Wire types: of bytes and messages, and of fixed sizes."""


@dataclass(frozen=True)
class Field:
    """A field of a message: its bytes from `start` to `end`, those of its value from `value`."""

    code: int
    wire: int
    start: int
    value: int
    end: int


def fields(data: np.ndarray, start: int, end: int) -> Iterator[Field]:
    """The fields of a message. Raises ValueError if it is malformed."""
    at = start
    while at < end:
        begin = at
        tag, at = _varint(data, at, end)
        wire = tag & 7
        if wire == _LEN:
            size, at = _varint(data, at, end)
        elif wire == 0:
            size = _varint(data, at, end)[1] - at
        elif wire in _SIZES:
            size = _SIZES[wire]
        else:
            raise ValueError("wire type of a group")
        if size > end - at:
            raise ValueError("field beyond its message")
        yield Field(tag >> 3, wire, begin, at, at + size)
        at += size


def _varint(data: np.ndarray, at: int, end: int) -> tuple[int, int]:
    value = shift = 0
    while at < end and shift < 64:
        byte = int(data[at])
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return value, at
    raise ValueError("varint without an end")


def _encoded(value: int) -> bytes:
    result = bytearray()
    while value > 127:
        result.append(value & 127 | 128)
        value >>= 7
    return bytes([*result, value])


def light_message(path: Path) -> bytes:
    """The message of a model without large elements of its initializers."""
    if path.stat().st_size < LARGE:
        return path.read_bytes()
    data = np.memmap(path, np.uint8, "r")
    try:
        return b"".join(_rewritten(data, 0, len(data), path.name, (GRAPH, INITIALIZER)))
    except ValueError:
        return path.read_bytes()  # of which protobuf says what is wrong


def _rewritten(
    data: np.ndarray, start: int, end: int, name: str, nested: tuple[int, ...]
) -> Iterator[bytes]:
    """The pieces of a message, of which some are rewritten: those that `nested` leads to."""
    reference = b""
    for field in fields(data, start, end):
        is_inner = field.wire == _LEN and nested and field.code == nested[0]
        if is_inner:
            inner = b"".join(_rewritten(data, field.value, field.end, name, nested[1:]))
            yield _encoded(field.code << 3 | _LEN) + _encoded(len(inner)) + inner
        elif not nested and field.code == RAW_DATA and field.end - field.value >= LARGE:
            reference = _reference(name, field.value, field.end - field.value)
        else:
            yield data[field.start : field.end].tobytes()
    yield reference  # the last says where data are, whatever the fields before it do


def _reference(name: str, offset: int, length: int) -> bytes:
    """The fields of a tensor whose elements are in a file."""
    tensor = onnx.TensorProto(data_location=onnx.TensorProto.EXTERNAL)
    for key, value in (("location", name), ("offset", str(offset)), ("length", str(length))):
        tensor.external_data.add(key=key, value=value)
    return tensor.SerializeToString()


class Files:
    """The files of a model, in the folder that it is in; None for a model without one."""

    def __init__(self, folder: Path | None) -> None:
        self.folder = folder
        self._mapped: dict[Path, np.ndarray] = {}

    def array(self, proto: "onnx.TensorProto") -> np.ndarray:
        """The elements of a constant in a file, as they are there. Raises ModelError."""
        if self.folder is None:
            raise ModelError(f"constant '{proto.name}' is in a file: import the model by its path")
        entries = {each.key: each.value for each in proto.external_data}
        data = self._map(proto.name, entries.get("location", ""))
        dtype = onnx.helper.tensor_dtype_to_np_dtype(proto.data_type)
        size, offset = math.prod(proto.dims) * dtype.itemsize, int(entries.get("offset", 0))
        is_inside = min(proto.dims, default=0) >= 0 and 0 <= offset <= len(data) - size
        if int(entries.get("length", size)) != size or not is_inside:
            where = f"from {offset} on in '{entries['location']}' of {len(data)}"
            raise ModelError(f"constant '{proto.name}' of {size} bytes is not {where}")
        return data[offset : offset + size].view(dtype).reshape(tuple(proto.dims))

    def _map(self, name: str, location: str) -> np.ndarray:
        assert self.folder is not None
        folder = self.folder.resolve()
        path = (folder / location).resolve()
        if not location or not path.is_relative_to(folder):
            raise ModelError(f"constant '{name}' is in '{location}', out of the model's folder")
        if path not in self._mapped:
            if not path.is_file():
                raise ModelError(f"constant '{name}' is in '{location}', which is no file")
            has_data = path.stat().st_size > 0
            data = np.memmap(path, np.uint8, "r") if has_data else np.empty(0, np.uint8)
            self._mapped[path] = data.view(np.ndarray)
        return self._mapped[path]
