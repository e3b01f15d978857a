"""Converts quantised blocks from the layout of files to that of `graph.dequantize`.

    file:   row r, block b: factors, 32 values
    panels: scale[p, b, r], ..., data[p, b, ...] with p = row // 16, r = row % 16

Values are permuted, never changed.
"""

from collections.abc import Mapping

import numpy as np

from relax_mlir.dialects.graph.quantized import PANEL
from relax_mlir.llm.formats.encoding import to_blocks
from relax_mlir.llm.formats.quantization import BLOCKS, RawTensor
from relax_mlir.llm.formats.unpacking import unpack
from relax_mlir.panels import fill

CHUNK_PANELS = 16  # both input and output stay in the cache


def pack_matrix(raw: RawTensor, scheme: str, outs: Mapping[str, np.ndarray]) -> None:
    """Fills the parts of a matrix, each of `part_kinds`; padding rows are zero.

    A matrix in another format is rounded to one of `BLOCKS`.
    """
    for start in range(0, len(outs["data"]), CHUNK_PANELS):
        rows = raw.data[start * PANEL : (start + CHUNK_PANELS) * PANEL]
        chunk = RawTensor(raw.format, (len(rows), raw.shape[1]), rows)
        fields = _fields(chunk, scheme)
        chunks = {part: out[start : start + CHUNK_PANELS] for part, out in outs.items()}
        fill(chunks, fields)


def _fields(raw: RawTensor, scheme: str) -> dict[str, np.ndarray]:
    """The parts in row-major order: [rows, blocks, ...] of bytes, or of factors."""
    if scheme.upper() not in BLOCKS:
        return unpack(raw)
    blocks = to_blocks(raw, scheme.upper()).data
    return {"data" if name == "q" else name: blocks[name] for name in blocks.dtype.names or ()}
