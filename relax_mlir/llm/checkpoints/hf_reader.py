"""Weights of a model in a Hugging Face folder: `config.json` and safetensors files.

A safetensors file is a length (8 bytes, little endian), a JSON table of that length, and the
tensors' bytes. They are memory-mapped here, since NumPy has no bfloat16.

Source: the safetensors format description.
"""

import mmap
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod
from pathlib import Path
from typing import Any, TypeGuard

import numpy as np

from relax_mlir.errors import ModelError
from relax_mlir.llm.architectures.layout import Stored
from relax_mlir.llm.architectures.registry import of_folder
from relax_mlir.llm.checkpoints.weights import WeightSource, check_shapes
from relax_mlir.llm.formats.fields import Fields
from relax_mlir.llm.formats.model_files import map_model_file, parse_json, quoted
from relax_mlir.llm.formats.packed_weights import PARTS, PackedMatrix, packing_of
from relax_mlir.llm.formats.quantization import PLAIN, RawTensor

MAX_TABLE_BYTES = 100_000_000  # of the format
MAX_RANK = 64  # of NumPy
SINGLE, INDEX = "model.safetensors", "model.safetensors.index.json"
ELEMENTS = {**PLAIN, "I32": np.dtype("<i4")}
"""Element types of tensors; integers are parts of packed matrices."""


@dataclass(frozen=True, eq=False)
class _Stored:
    """A tensor in one of the files; `start` is its first byte, from the start of the file."""

    buffer: mmap.mmap
    format: str
    shape: tuple[int, ...]
    start: int


class HuggingFaceWeights(WeightSource):
    """The weights in `folder`; raises ModelError if it has no complete model that is supported."""

    def __init__(self, folder: Path) -> None:
        self.architecture, self.config = of_folder(folder)
        self._tensors: dict[str, _Stored] = {}
        for path, names in _shards(folder).items():
            table = _read_table(path)
            missing = names - table.keys()
            if missing:
                raise ModelError(
                    f"{path}: has no weight {quoted(min(missing))}, which {INDEX} puts there"
                )
            self._tensors.update(table)
        self._find_packed(folder)
        tensors = self._by_rows(self.architecture.hf_tensors(self.config))
        self._drop_unused(self.architecture.unused, {tensor.name for tensor in tensors})
        shapes = {name: tensor.shape for name, tensor in self._tensors.items()}
        check_shapes(str(folder), self.config, tensors, {**shapes, **self._packed})
        for name, tensor in self._tensors.items():
            if tensor.format not in PLAIN:
                known = ", ".join(PLAIN)
                raise ModelError(f"{folder}: weight {quoted(name)} has dtype I32; expects {known}")
        self._arrange(tensors)

    def stored(self, name: str) -> RawTensor:
        """See `WeightSource.stored`."""
        return self._matrix(name).decode() if name in self._packed else _view(self._tensors[name])

    def stored_format(self, name: str) -> str:
        """See `WeightSource.stored_format`."""
        return self._matrix(name).format if name in self._packed else self._tensors[name].format

    def release(self) -> None:
        """See `WeightSource.release`."""
        for buffer in {tensor.buffer for tensor in {**self._tensors, **self._parts}.values()}:
            buffer.madvise(mmap.MADV_DONTNEED)

    def _find_packed(self, folder: Path) -> None:
        """Sets the parts of packed matrices apart, and the shapes of the matrices."""
        self._parts: dict[str, _Stored] = {}
        self._packed: dict[str, tuple[int, ...]] = {}
        self._packing = packing_of(Fields.read_json(folder / "config.json"))
        if self._packing is None:
            return
        for name in [name for name in self._tensors if name.endswith(".qweight")]:
            module = name.removesuffix(".qweight")
            found = [part for part in PARTS if f"{module}.{part}" in self._tensors]
            parts = {part: self._tensors.pop(f"{module}.{part}") for part in found}
            shapes = {part: tensor.shape for part, tensor in parts.items()}
            shape = self._packing.shape(shapes)
            are_integers = all((t.format == "I32") != (p == "scales") for p, t in parts.items())
            if shape is None or not are_integers:
                raise ModelError(
                    f"{folder}: {quoted(module)} has the parts {quoted(shapes)}; expects a matrix "
                    f"of {self._packing.method} in groups of {self._packing.group or 'all'}"
                )
            self._parts.update({f"{module}.{part}": tensor for part, tensor in parts.items()})
            self._packed[f"{module}.weight"] = shape
            self._drop_zeros(f"{module}.bias")

    def _drop_zeros(self, name: str) -> None:
        """Drops a bias that some exporters add."""
        known = {tensor.name for tensor in self.architecture.hf_tensors(self.config)}
        bias = self._tensors.get(name)
        if bias is not None and name not in known and not _view(bias).to_f32().any():
            del self._tensors[name]

    def _by_rows(self, tensors: Sequence[Stored]) -> list[Stored]:
        """The tensors; packed ones are (out, in) in all architectures."""
        return [replace(t, transposed=False) if t.name in self._packed else t for t in tensors]

    def _matrix(self, name: str) -> PackedMatrix:
        """The parts of a packed matrix."""
        assert self._packing is not None  # there are packed matrices
        module = name.removesuffix(".weight")
        names = {part: f"{module}.{part}" for part in PARTS}
        parts = {k: _view(self._parts[name]) for k, name in names.items() if name in self._parts}
        matrix = PackedMatrix.of(self._packing, parts)
        if matrix is None:
            raise ModelError(f"weight '{module}.g_idx' has a group that '{module}.scales' has not")
        return matrix

    def _drop_unused(self, ends: tuple[str, ...], used: set[str]) -> None:
        """Drops extra tensors of some exporters: rotary tables, a second tied embedding."""
        unused = [name for name in self._tensors if name.endswith(ends) and name not in used]
        if self.config.tie_embeddings:
            heads = ("lm_head.weight", "embed_out.weight")
            unused += [name for name in heads if name in self._tensors and name not in used]
        for name in unused:
            del self._tensors[name]


def _view(tensor: _Stored) -> RawTensor:
    """A tensor, memory-mapped."""
    dtype = ELEMENTS[tensor.format]
    count = prod(tensor.shape)
    stored = np.frombuffer(tensor.buffer, dtype, count, tensor.start).reshape(tensor.shape)
    return RawTensor(tensor.format, tensor.shape, stored)


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


def _read_table(path: Path) -> dict[str, _Stored]:
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


def _stored(path: Path, buffer: mmap.mmap, data_start: int, name: str, entry: Any) -> _Stored:
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
    return _Stored(buffer, format, tuple(shape), data_start + begin)


def _bare(value: Any) -> str:
    return quoted(value).strip("'")


def _are_sizes(values: Any, limit: int = 2**31) -> TypeGuard[list[int]]:
    return isinstance(values, list) and all(type(v) is int and 0 <= v < limit for v in values)
