"""Blocks of quantised numbers, as files keep them, in the order of `graph.dequantize`.

    file:   row r, block b: scale, minimum, 32 numbers
    panels: scale[p, b, r], minimum[p, b, r], data[p, b, ...] with p = row // 16, r = row % 16

Numbers are moved, never changed. Four that follow one another in a row stay together, so this is
a transposition of 32-bit words.
"""

from collections.abc import Mapping

import numpy as np

from relax_mlir.dialects.graph.quantized import BLOCK, PANEL, SCHEMES
from relax_mlir.llm.encoding import to_blocks
from relax_mlir.llm.quantization import RawTensor

CHUNK_PANELS = 16  # what is read and what is written both stay in the cache

DTYPES = {"data": np.dtype(np.int8), "scale": np.dtype(np.float16), "minimum": np.dtype(np.float16)}
"""Element types of the parts of a matrix."""


def part_dims(part: str, scheme: str, rows: int, columns: int) -> tuple[int, ...]:
    """The dims of a part ("data", "scale", "minimum") of a matrix [rows, columns]."""
    panels, blocks = -(-rows // PANEL), columns // BLOCK
    return (panels, blocks, *(SCHEMES[scheme].inner if part == "data" else (PANEL,)))


def pack_matrix(raw: RawTensor, scheme: str, outs: Mapping[str, np.ndarray]) -> None:
    """Fills the parts of a matrix, each of `part_dims`; rows past its last one are zero.

    A matrix that is stored in another format is rounded.
    """
    for start in range(0, len(outs["data"]), CHUNK_PANELS):
        rows = raw.data[start * PANEL : (start + CHUNK_PANELS) * PANEL]
        chunk = RawTensor(raw.format, (len(rows), raw.shape[1]), rows)
        blocks = to_blocks(chunk, scheme.upper()).data
        for part, out in outs.items():
            field = blocks["q" if part == "data" else part]
            _pack(field, out[start : start + CHUNK_PANELS])


def _pack(rows: np.ndarray, out: np.ndarray) -> None:
    """Transposes whole panels; `rows` are [rows, blocks] of f16, or of bytes behind that."""
    panels, blocks = out.shape[:2]
    missing = panels * PANEL - len(rows)
    if missing:
        rows = np.concatenate([rows, np.zeros((missing, *rows.shape[1:]), rows.dtype)])
    if rows.ndim == 3:
        rows = np.ascontiguousarray(rows).view(np.uint32)
        source = rows.reshape(panels, PANEL, blocks, -1)
        out.view(np.uint32).reshape(panels, blocks, -1, PANEL)[...] = source.transpose(0, 2, 3, 1)
    else:
        out[...] = rows.reshape(panels, PANEL, blocks).transpose(0, 2, 1)
