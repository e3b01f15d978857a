"""Tensors in the safetensors files of a folder.

A file is a length (8 bytes, little endian), a JSON table of that length, and the tensors' bytes.
They are memory-mapped here, since NumPy has no bfloat16.

Source: the safetensors format description.
"""

import mmap
from collections.abc import Iterable
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any, TypeGuard

import numpy as np

from relax_mlir.errors import ModelError
from relax_mlir.llm.formats.fields import Fields
from relax_mlir.llm.formats.model_files import map_model_file, parse_json, quoted
from relax_mlir.llm.formats.quantization import PLAIN, RawTensor

MAX_TABLE_BYTES = 100_000_000  # of the format
MAX_RANK = 64  # of NumPy
SINGLE, INDEX = "model.safetensors", "model.safetensors.index.json"
ELEMENTS = {**PLAIN, "I32": np.dtype("<i4"), "I64": np.dtype("<i8")}
"""Element types of tensors; integers are parts of packed matrices, or not used."""


@dataclass(frozen=True, eq=False)
class StoredTensor:
    """A tensor in one of the files; `start` is its first byte, from the start of the file."""

    buffer: mmap.mmap
    format: str
    shape: tuple[int, ...]
    start: int

    def view(self) -> RawTensor:
        """The tensor, memory-mapped."""
        count = prod(self.shape)
        values = np.frombuffer(self.buffer, ELEMENTS[self.format], count, self.start)
        return RawTensor(self.format, self.shape, values.reshape(self.shape))


def read_folder(folder: Path) -> dict[str, StoredTensor]:
    """The tensors of a folder by name; raises ModelError unless all of its files are complete."""
    tensors: dict[str, StoredTensor] = {}
    for path, names in _shards(folder).items():
        table = read_table(path)
        missing = names - table.keys()
        if missing:
            raise ModelError(
                f"{path}: has no weight {quoted(min(missing))}, which {INDEX} puts there"
            )
        tensors.update(table)
    return tensors


def release(tensors: Iterable[StoredTensor]) -> None:
    """Releases the memory of pages that were read; they can be read again."""
    for buffer in {tensor.buffer for tensor in tensors}:
        buffer.madvise(mmap.MADV_DONTNEED)


def _shards(folder: Path) -> dict[Path, set[str]]:
    """The weight files of `folder`, with the names of their weights according to the index."""
    if (folder / SINGLE).exists():
        return {folder / SINGLE: set()}
    if not (folder / INDEX).exists():
        raise ModelError(f"{folder}: has no weights; expects '{SINGLE}' or '{INDEX}'")
    weight_map = Fields.read_json(folder / INDEX).table("weight_map")
    shards: dict[Path, set[str]] = {}
    for name in weight_map.values:
        file = weight_map.text(name)
        if Path(file).name != file:  # never read outside of the folder
            raise weight_map.refuse(f"{quoted(name)} is in {quoted(file)}; expects a file name")
        shards.setdefault(folder / file, set()).add(name)
    return shards


def read_table(path: Path) -> dict[str, StoredTensor]:
    """The tensors of one file by name; raises ModelError if it is damaged."""
    buffer = map_model_file(path)
    table_bytes = int.from_bytes(buffer[:8], "little")
    data_start = 8 + table_bytes
    if len(buffer) < 8 or data_start > len(buffer):
        raise ModelError(f"{path}: is no safetensors file, or cut short")
    if table_bytes > MAX_TABLE_BYTES:
        raise ModelError(
            f"{path}: has a tensor table of {table_bytes} bytes; at most {MAX_TABLE_BYTES} are "
            "accepted"
        )
    table = parse_json(path, buffer[8:data_start], "the tensor table ")
    if not isinstance(table, dict):
        raise ModelError(f"{path}: the tensor table is {quoted(table)}; expects a JSON object")
    table.pop("__metadata__", None)
    return {name: _stored(path, buffer, data_start, name, table[name]) for name in table}


def _stored(path: Path, buffer: mmap.mmap, data_start: int, name: str, entry: Any) -> StoredTensor:
    weight = f"{path}: weight {quoted(name)}"
    if not isinstance(entry, dict):
        raise ModelError(f"{weight} is {quoted(entry)}; expects a JSON object")
    format, shape, offsets = (entry.get(key) for key in ("dtype", "shape", "data_offsets"))
    if not isinstance(format, str) or format not in ELEMENTS:
        known = ", ".join(PLAIN)
        raise ModelError(f"{weight} has dtype {_bare(format)}; supported are {known}")
    if not _are_sizes(shape) or len(shape) > MAX_RANK:
        raise ModelError(
            f"{weight} has shape {quoted(shape)}; expects up to {MAX_RANK} integers below 2^31"
        )
    if not _are_sizes(offsets, 2**63) or len(offsets) != 2:
        raise ModelError(f"{weight} has data_offsets {quoted(offsets)}; expects two integers")
    (begin, end), num_bytes = offsets, prod(shape) * ELEMENTS[format].itemsize
    if end - begin != num_bytes:
        raise ModelError(f"{weight} has {end - begin} bytes; expects {num_bytes}")
    if data_start + end > len(buffer):
        raise ModelError(
            f"{path}: is cut short: weight {quoted(name)} ends at byte {data_start + end}, "
            f"but the file has {len(buffer)}"
        )
    return StoredTensor(buffer, format, tuple(shape), data_start + begin)


def _bare(value: Any) -> str:
    return quoted(value).strip("'")


def _are_sizes(values: Any, limit: int = 2**31) -> TypeGuard[list[int]]:
    return isinstance(values, list) and all(type(v) is int and 0 <= v < limit for v in values)
