"""The GGUF container: its metadata, and its tensors as memory-mapped bytes.

The reader of the `gguf` package makes a NumPy object per metadata element, which takes two seconds
for a vocabulary of 50,000 tokens, and trusts the lengths in the file; this one takes a tenth of a
second and checks every length.

Source: the GGUF specification (ggml, `docs/gguf.md`), versions 2 and 3, little endian.
"""

import mmap
import struct
from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType

from relax_mlir.errors import ModelError
from relax_mlir.llm.formats.model_files import map_model_file, quoted
from relax_mlir.llm.formats.quantization import FORMATS, RawTensor

MAGIC = b"GGUF"
VERSIONS = (2, 3)
DEFAULT_ALIGNMENT = 32
MAX_RANK = 4
MAX_DIM = 2**31 - 1
MAX_METADATA_BYTES = 64 << 20
"""Far above the largest vocabularies (16 MB); each byte may take 10 in memory."""

STRING, ARRAY = 8, 9
SCALARS: Mapping[int, np.dtype] = {
    0: np.dtype("u1"),
    1: np.dtype("i1"),
    2: np.dtype("<u2"),
    3: np.dtype("<i2"),
    4: np.dtype("<u4"),
    5: np.dtype("<i4"),
    6: np.dtype("<f4"),
    7: np.dtype("?"),
    10: np.dtype("<u8"),
    11: np.dtype("<i8"),
    12: np.dtype("<f8"),
}


@dataclass(frozen=True)
class GgufTensor:
    """A tensor of the file, in a storage `format` such as "Q4_1".

    `shape` is outermost dim first, in elements: (out, in) for a projection (GGUF states it
    innermost first); `offset` and `num_bytes` are bytes from the start of the file.
    """

    name: str
    format: str
    shape: tuple[int, ...]
    offset: int
    num_bytes: int


@dataclass(frozen=True, eq=False)
class GgufFile:
    """An opened GGUF file; the tensors' bytes stay on disk until they are touched."""

    path: Path
    metadata: Mapping[str, Any]
    tensors: Mapping[str, GgufTensor]
    buffer: mmap.mmap

    @staticmethod
    def open(path: Path) -> "GgufFile":
        """Reads the header of the file at `path`.

        Raises ModelError if the file is missing, truncated, or not a GGUF file of a known version.
        """
        return _parse(path, map_model_file(path))

    def check_format(self, name: str) -> None:
        """Raises ModelError if tensor `name` is in a format that cannot be decoded."""
        format = self.tensors[name].format
        if format not in FORMATS:
            raise ModelError(
                f"{self.path}: tensor {quoted(name)} has format {format}; "
                f"supported are {', '.join(FORMATS)}"
            )

    def raw(self, name: str) -> RawTensor:
        """Tensor `name` in its storage format: read-only, memory-mapped."""
        self.check_format(name)
        tensor = self.tensors[name]
        stored = np.frombuffer(self.buffer, np.uint8, tensor.num_bytes, tensor.offset)
        return RawTensor.from_bytes(tensor.format, tensor.shape, stored)


class _Cursor:
    """Reads consecutive values and refuses to read past the end of the file."""

    def __init__(self, path: Path, buffer: mmap.mmap) -> None:
        self.path = path
        self.buffer = buffer
        self.position = 0

    def take(self, num_bytes: int, what: str) -> int:
        """Skips `num_bytes` and returns their offset."""
        start = self.position
        if start + num_bytes > MAX_METADATA_BYTES and len(self.buffer) > MAX_METADATA_BYTES:
            raise ModelError(
                f"{self.path}: {what} ends at byte {start + num_bytes}; metadata and tensor table "
                f"may take {MAX_METADATA_BYTES} bytes"
            )
        if num_bytes > len(self.buffer) - start:
            raise ModelError(
                f"{self.path}: is cut short: {what} needs {num_bytes} bytes at {start}, "
                f"but the file has {len(self.buffer)}"
            )
        self.position = start + num_bytes
        return start

    def integer(self, form: str, what: str) -> int:
        return struct.unpack_from(form, self.buffer, self.take(struct.calcsize(form), what))[0]

    def string(self, what: str) -> str:
        length = self.integer("<Q", what)
        start = self.take(length, what)
        return self.buffer[start : start + length].decode("utf-8", errors="replace")

    def scalars(self, kind: int, count: int, what: str) -> list[Any]:
        dtype = SCALARS[kind]
        start = self.take(count * dtype.itemsize, what)
        return np.frombuffer(self.buffer, dtype, count, start).tolist()

    def value(self, what: str) -> Any:
        kind = self.integer("<I", what)
        if kind in SCALARS:
            return self.scalars(kind, 1, what)[0]
        if kind == STRING:
            return self.string(what)
        if kind == ARRAY:
            return self.array(what)
        raise ModelError(f"{self.path}: {what} has the unknown type {kind}")

    def array(self, what: str) -> list[Any]:
        kind, count = self.integer("<I", what), self.integer("<Q", what)
        if kind in SCALARS:
            return self.scalars(kind, count, what)
        if kind == STRING:
            return [self.string(what) for _ in range(count)]
        raise ModelError(f"{self.path}: {what} is an array of the unknown type {kind}")


def _parse(path: Path, buffer: mmap.mmap) -> GgufFile:
    if buffer[: len(MAGIC)] != MAGIC:
        raise ModelError(f"{path}: is no GGUF file: it starts with {buffer[:4]!r}, not {MAGIC!r}")
    cursor = _Cursor(path, buffer)
    cursor.take(len(MAGIC), "the magic number")
    version = cursor.integer("<I", "the version")
    if version not in VERSIONS:
        raise ModelError(f"{path}: has GGUF version {version}; versions 2 and 3 are accepted")
    num_tensors = cursor.integer("<Q", "the number of tensors")
    num_keys = cursor.integer("<Q", "the number of metadata keys")
    metadata = {}
    for _ in range(num_keys):
        key = cursor.string("a metadata key")
        if key in metadata:
            raise ModelError(f"{path}: has the key {quoted(key)} twice")
        metadata[key] = cursor.value(quoted(key))
    infos = [_tensor_info(cursor) for _ in range(num_tensors)]
    alignment = metadata.get("general.alignment", DEFAULT_ALIGNMENT)
    if type(alignment) is not int or not 0 < alignment <= MAX_DIM:
        raise ModelError(
            f"{path}: 'general.alignment' is {quoted(alignment)}; expects a positive integer"
        )
    data_start = -(-cursor.position // alignment) * alignment
    tensors = {info.name: _placed(info, data_start, path, len(buffer)) for info in infos}
    if len(tensors) != len(infos):
        raise ModelError(f"{path}: names a tensor twice")
    return GgufFile(path, metadata, tensors, buffer)


def _tensor_info(cursor: _Cursor) -> GgufTensor:
    """Reads one entry of the tensor table; the offset is still relative to the data section."""
    name = cursor.string("a tensor name")
    what = f"tensor {quoted(name)}"
    rank = cursor.integer("<I", what)
    if rank > MAX_RANK:
        raise ModelError(f"{cursor.path}: {what} has rank {rank}; at most {MAX_RANK} is accepted")
    shape = tuple(cursor.integer("<Q", what) for _ in range(rank))[::-1]
    if not all(0 < dim <= MAX_DIM for dim in shape):
        raise ModelError(
            f"{cursor.path}: {what} has shape {shape}; dims of 1 to {MAX_DIM} are accepted"
        )
    type_id, offset = cursor.integer("<I", what), cursor.integer("<Q", what)
    try:
        kind = GGMLQuantizationType(type_id)
    except ValueError as error:
        known = ", ".join(FORMATS)
        message = f"{cursor.path}: {what} has the unknown type {type_id}; supported are {known}"
        raise ModelError(message) from error
    block, block_bytes = GGML_QUANT_SIZES[kind]
    row = shape[-1] if shape else 1
    if row % block:
        raise ModelError(
            f"{cursor.path}: {what} has rows of {row}, no multiple of {kind.name}'s {block}"
        )
    return GgufTensor(name, kind.name, shape, offset, prod(shape) // block * block_bytes)


def _placed(info: GgufTensor, data_start: int, path: Path, file_bytes: int) -> GgufTensor:
    offset = data_start + info.offset
    if offset + info.num_bytes > file_bytes:
        raise ModelError(
            f"{path}: is cut short: tensor {quoted(info.name)} ends at byte "
            f"{offset + info.num_bytes}, but the file has {file_bytes}"
        )
    return replace(info, offset=offset)
