"""Converts GGUF files to other formats, for programs that compute in the storage format."""

import hashlib
import os
from pathlib import Path

import gguf
import numpy as np
from gguf import GGMLQuantizationType

from relax_mlir import cache


def converted_file(path: Path, format: str) -> Path:
    """A GGUF file with the model of `path` whose matrices are in `format`: "f32", "q8_0" or such.

    Vectors are float32. The file is made on first use, and stored in the cache folder.
    """
    status = path.stat()
    identity = f"{path.resolve()} {status.st_size} {status.st_mtime_ns}"
    digest = hashlib.sha256(identity.encode()).hexdigest()[:16]
    target = cache.folder() / "models" / f"{path.stem}-{digest}.{format}.gguf"
    if not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        partial = target.with_suffix(f".{os.getpid()}.partial")
        _write(gguf.GGUFReader(path), partial, GGMLQuantizationType[format.upper()])
        partial.replace(target)
    return target


def _write(reader: gguf.GGUFReader, target: Path, format: GGMLQuantizationType) -> None:
    writer = gguf.GGUFWriter(target, "llama")
    for field in reader.fields.values():
        if field.name.startswith("GGUF.") or field.name == gguf.Keys.General.ARCHITECTURE:
            continue  # the writer adds these itself
        kind = field.types[0]
        inner = field.types[-1] if kind == gguf.GGUFValueType.ARRAY else None
        writer.add_key_value(field.name, field.contents(), kind, sub_type=inner)
    for tensor in reader.tensors:
        shape = [int(dim) for dim in tensor.shape[::-1]]
        values = gguf.dequantize(tensor.data, tensor.tensor_type).astype(np.float32).reshape(shape)
        if values.ndim == 1 or format == GGMLQuantizationType.F32:
            writer.add_tensor(tensor.name, values)
        else:
            writer.add_tensor(tensor.name, gguf.quantize(values, format), raw_dtype=format)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
