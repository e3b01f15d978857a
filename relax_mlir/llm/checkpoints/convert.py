"""Writes a model as a GGUF file that llama.cpp reads.

Tensors are written one at a time. What the file would mean is compared with the model before any of
them is read.

Source: GGUF specification; llama.cpp `llama_model::load_hparams`, `load_tensors`.
"""

import hashlib
import mmap
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol, cast

import gguf
import numpy as np
from gguf import GGMLQuantizationType
from gguf.constants import GGML_QUANT_SIZES

from relax_mlir import cache
from relax_mlir.errors import ModelError, UsageError
from relax_mlir.llm.architectures.architecture import Architecture
from relax_mlir.llm.architectures.gguf_metadata import (
    check_same,
    metadata_of,
    rope_tensors,
    stated_config,
)
from relax_mlir.llm.architectures.layout import Stored
from relax_mlir.llm.architectures.registry import IN_GGUF
from relax_mlir.llm.checkpoints.gguf_reader import GgufWeights
from relax_mlir.llm.checkpoints.hf_reader import HuggingFaceWeights
from relax_mlir.llm.checkpoints.packaged import resolve
from relax_mlir.llm.checkpoints.weights import WeightSource, check_shapes
from relax_mlir.llm.formats.fields import Fields
from relax_mlir.llm.formats.gguf_file import GgufFile, GgufTensor
from relax_mlir.llm.formats.quantization import PLAIN, RawTensor
from relax_mlir.llm.rounding.error_feedback import Inputs
from relax_mlir.llm.rounding.rounding import GRIDS, round_matrix
from relax_mlir.llm.tokenization.gguf_vocabulary import vocabulary_of

FORMATS = ("f32", "f16", "bf16", *(name.lower() for name in GRIDS))
"""The formats of matrices that can be written; `native` keeps those of the model."""
NARROWER = {"Q2_K": "Q4_0", "Q3_K": "Q4_0", "Q4_K": "Q5_0", "Q5_K": "Q5_1", "Q6_K": "Q8_0"}
"""What rows have that are no multiple of 256."""
HALF_MAX = 65504.0
"""The greatest finite value of float16."""
ALWAYS_F32 = (
    *(".ffn_gate_inp.weight", ".ffn_gate_inp_shexp.weight", "position_embd.weight"),
    *(".ssm_conv1d.weight", ".ssm_norm.weight", ".ssm_a", ".ssm_d"),
)
"""Matrices that llama.cpp reads as float32."""


class Calibrated(Protocol):
    """What matrices are multiplied with, by names of weights."""

    def inputs(self, name: str) -> Inputs | None:
        """None if it is unknown."""


def convert(
    model: str, target: Path, weights: str = "native", calibration: Calibrated | None = None
) -> None:
    """Writes `model`, a file or folder, to the GGUF file `target`, with matrices of `weights`.

    Vectors are float32. With a `calibration`, matrices are rounded for their inputs. Raises
    UsageError for another format, or one that is not rounded with a calibration; ModelError if the
    model cannot be read, or if a GGUF file cannot state what it computes.
    """
    if calibration is not None:
        check_rounded(weights)
    if weights.lower() not in ("native", *FORMATS):
        raise UsageError(f"no weights {weights!r}: expects native, {', '.join(FORMATS)}")
    path = resolve(model)
    if path.is_dir():
        source: WeightSource = HuggingFaceWeights(path)
        if source.config.image_id is not None:
            raise ModelError(f"{path}: reads images, which a GGUF file does not state")
        vocabulary = vocabulary_of(path, source.config)
    else:
        file = GgufFile.open(path)
        source = GgufWeights(file)
        vocabulary = {k: v for k, v in file.metadata.items() if k.startswith("tokenizer.")}
    partial = target.with_suffix(f".{os.getpid()}.partial")
    try:
        writer = _Writer(str(path), source, vocabulary, weights.upper())
        writer.write(partial, calibration)
        partial.replace(target)
    except OSError as error:
        raise ModelError(f"{target}: cannot be written: {error}") from error
    finally:
        partial.unlink(missing_ok=True)


def check_rounded(weights: str) -> None:
    """Raises UsageError unless matrices are rounded to blocks, which calibration is for."""
    if weights.upper() not in GRIDS:
        known = ", ".join(name.lower() for name in GRIDS)
        raise UsageError(f"calibration is for weights of {known}; not for {weights!r}")


def converted_file(path: Path, format: str) -> Path:
    """A GGUF file with the model of `path` whose matrices are in `format`: "f32", "q8_0" or such.

    The file is made on first use, and stored in the cache folder.
    """
    status = path.stat()
    identity = f"{path.resolve()} {status.st_size} {status.st_mtime_ns}"
    digest = hashlib.sha256(identity.encode()).hexdigest()[:16]
    target = cache.folder() / "models" / f"{path.stem}-{digest}.{format}.gguf"
    if not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        convert(str(path), target, format)
    return target


class _Writer:
    """The parts of a file: configuration, keys, and tensors with their formats."""

    def __init__(
        self, where: str, source: WeightSource, vocabulary: Mapping[str, Any], format: str
    ) -> None:
        own = source.architecture
        self.architecture: Architecture = IN_GGUF[own.gguf_of or own.gguf]
        self.source = source
        self.config = stated_config(self.architecture, source.config)
        prefix = self.architecture.gguf
        keys = metadata_of(self.architecture, self.config)
        self.metadata = {f"{prefix}.{key}": value for key, value in keys.items()}
        self.metadata.update(vocabulary)
        self.rope_tensors = rope_tensors(self.architecture, self.config)
        self.tensors = self.architecture.gguf_tensors(self.config)
        shapes = self.config.weight_shapes()
        self.shapes = {tensor.name: tensor.shape(shapes) for tensor in self.tensors}
        self.formats = {tensor.name: self._format(tensor, format) for tensor in self.tensors}
        self._check(where)

    def _format(self, tensor: Stored, wanted: str) -> str:
        """The format of a tensor: `wanted`, or the next that its rows fit."""
        shape = self.shapes[tensor.name]
        if len(shape) == 1 or tensor.name.endswith(ALWAYS_F32):
            return "F32"
        if wanted == "NATIVE":
            stored = {self.source.format(part) for part in tensor.parts}
            format = stored.pop() if len(stored) == 1 else "F32"
            return "F32" if tensor.transposed and format not in PLAIN else format
        if shape[-1] % GGML_QUANT_SIZES[GGMLQuantizationType[wanted]][0]:
            wanted = NARROWER.get(wanted, wanted)
        fits = shape[-1] % GGML_QUANT_SIZES[GGMLQuantizationType[wanted]][0] == 0
        return wanted if fits else "F16"

    def _check(self, where: str) -> None:
        """Refuses a model that the file would not state."""
        data = b"".join(array.tobytes() for array in self.rope_tensors.values())
        tensors, begin = {}, 0
        for name, array in self.rope_tensors.items():
            tensors[name] = GgufTensor(name, "F32", array.shape, begin, array.nbytes)
            begin += array.nbytes
        for name, shape in self.shapes.items():
            tensors[name] = GgufTensor(name, self.formats[name], shape, 0, 0)
        metadata = {"general.architecture": self.architecture.gguf, **self.metadata}
        file = GgufFile(Path(where), metadata, tensors, cast(mmap.mmap, data))
        stated = self.architecture.from_gguf(file, Fields(where, metadata))
        check_same(where, self.architecture.gguf, self.config, stated)
        check_shapes(where, stated, self.architecture.gguf_tensors(stated), self.shapes)

    def write(self, path: Path, calibration: Calibrated | None) -> None:
        """Writes the file."""
        writer = gguf.GGUFWriter(path, self.architecture.gguf)
        writer.add_quantization_version(gguf.GGML_QUANT_VERSION)
        for key, value in self.metadata.items():
            _add(writer, key, value)
        for name, array in self.rope_tensors.items():
            writer.add_tensor_info(name, array.shape, array.dtype, array.nbytes)
        for tensor in self.tensors:
            kind = GGMLQuantizationType[self.formats[tensor.name]]
            shape = self.shapes[tensor.name]
            block, size = GGML_QUANT_SIZES[kind]
            stored = (*shape[:-1], shape[-1] // block * size)
            writer.add_tensor_info(
                tensor.name, stored, np.dtype(np.uint8), int(np.prod(stored)), raw_dtype=kind
            )
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_ti_data_to_file()
        for array in self.rope_tensors.values():
            writer.write_tensor_data(array)
        for tensor in self.tensors:
            writer.write_tensor_data(self._bytes(tensor, calibration))
            self.source.release()
        writer.close()

    def _bytes(self, tensor: Stored, calibration: Calibrated | None) -> np.ndarray:
        """The rows of a tensor in its format, uint8."""
        format = self.formats[tensor.name]
        rows = []
        for part in tensor.parts:
            # Rows of a transposed matrix are not what its inputs are multiplied with.
            is_rounded = calibration is not None and format in GRIDS and not tensor.transposed
            inputs = calibration.inputs(part) if calibration and is_rounded else None
            raw = _as_stored(tensor, self.source.raw(part))
            what = f"{self.source.where}: matrix '{part}'"
            rows.append(_in_format(what, raw, format, inputs))
        joined = rows[0] if len(rows) == 1 else np.concatenate(rows)
        if tensor.order is not None:
            ordered = np.empty_like(joined)
            ordered[tensor.order] = joined
            joined = ordered
        return joined


def _as_stored(tensor: Stored, raw: RawTensor) -> RawTensor:
    """The elements of a weight as they are in the tensor, but for the order of rows."""
    if tensor.rates:
        return RawTensor("F32", raw.shape, -np.exp(raw.to_f32()))
    if tensor.transposed:
        count = tensor.matrices or 1
        data = raw.data.reshape(count, -1, raw.data.shape[-1])
        each = RawTensor(raw.format, (count, raw.shape[0] // count, raw.shape[1]), data)
        return each.transposed().flattened()
    return raw


def _check_range(what: str, values: np.ndarray, format: str) -> None:
    """Refuses values that float16, which scales of blocks are too, cannot represent."""
    greatest = float(np.abs(values).max(initial=0))
    if not greatest <= HALF_MAX:
        accepted = f"up to {HALF_MAX:g} in {format.lower()}, or f32 or bf16"
        raise ModelError(f"{what} has a value of {greatest:g}; expects {accepted}")


def _in_format(what: str, raw: RawTensor, format: str, inputs: Inputs | None) -> np.ndarray:
    """The bytes of each row, in `format`: those of the file, or rounded."""
    if raw.format == format:
        data = np.ascontiguousarray(raw.data)
        return data.view(np.uint8).reshape(len(data), -1)
    values = raw.to_f32()
    if format not in ("F32", "BF16"):
        _check_range(what, values, format)
    if format in PLAIN and format != "BF16":
        return values.astype(PLAIN[format]).view(np.uint8).reshape(len(values), -1)
    if inputs is not None or format.endswith("_K"):
        return round_matrix(values, format, inputs)
    packed = gguf.quantize(values, GGMLQuantizationType[format])
    return packed.view(np.uint8).reshape(len(values), -1)


def _add(writer: gguf.GGUFWriter, key: str, value: Any) -> None:
    adders: dict[type, Any] = {
        bool: writer.add_bool,
        int: writer.add_uint32,
        float: writer.add_float32,
        str: writer.add_string,
        list: writer.add_array,
        bytes: writer.add_array,
    }
    if value != []:
        adders[type(value)](key, value)
