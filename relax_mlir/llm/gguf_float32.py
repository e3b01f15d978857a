"""GGUF files decoded to float32, for programs that would compute with the stored format."""

import hashlib
from pathlib import Path

import gguf
import numpy as np

from relax_mlir.llm.packaged import cache_folder


def float32_file(path: Path) -> Path:
    """A GGUF file with the model of `path` whose weights are all float32, made when first needed.

    It is kept in the cache folder.
    """
    status = path.stat()
    identity = f"{path.resolve()} {status.st_size} {status.st_mtime_ns}"
    digest = hashlib.sha256(identity.encode()).hexdigest()[:16]
    target = cache_folder() / "models" / f"{path.stem}-{digest}.F32.gguf"
    if not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        partial = target.with_suffix(".partial")
        _write_float32(gguf.GGUFReader(path), partial)
        partial.replace(target)
    return target


def _write_float32(reader: gguf.GGUFReader, target: Path) -> None:
    writer = gguf.GGUFWriter(target, "llama")
    for field in reader.fields.values():
        if field.name.startswith("GGUF.") or field.name == gguf.Keys.General.ARCHITECTURE:
            continue  # the writer adds these itself
        kind = field.types[0]
        inner = field.types[-1] if kind == gguf.GGUFValueType.ARRAY else None
        writer.add_key_value(field.name, field.contents(), kind, sub_type=inner)
    for tensor in reader.tensors:
        values = gguf.dequantize(tensor.data, tensor.tensor_type)
        shape = [int(dim) for dim in tensor.shape[::-1]]
        writer.add_tensor(tensor.name, values.astype(np.float32).reshape(shape))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
