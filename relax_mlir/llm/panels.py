"""Blocks of quantised numbers, as files keep them, in the order of `graph.dequantize`.

    file:   row r, block b: factors, 32 numbers
    panels: scale[p, b, r], ..., data[p, b, ...] with p = row // 16, r = row % 16

Numbers are moved, never changed. Four that follow one another in a row stay together, so this is
a transposition of 32-bit words.
"""

from collections.abc import Mapping

import numpy as np

from relax_mlir.dialects.graph.quantized import BLOCK, PANEL, SCHEMES
from relax_mlir.llm.encoding import to_blocks
from relax_mlir.llm.quantization import BLOCKS, RawTensor
from relax_mlir.llm.unpacking import unpack

CHUNK_PANELS = 16  # what is read and what is written both stay in the cache


def part_kinds(scheme: str, rows: int, columns: int) -> dict[str, tuple[tuple[int, ...], str]]:
    """The dims and the element type of each part of a matrix [rows, columns]."""
    parts = SCHEMES[scheme].parts(-(-rows // PANEL), columns // BLOCK)
    return {part: (dims, element) for part, (element, dims) in parts.items()}


def pack_matrix(raw: RawTensor, scheme: str, outs: Mapping[str, np.ndarray]) -> None:
    """Fills the parts of a matrix, each of `part_kinds`; rows past its last one are zero.

    A matrix that is stored in another format is rounded, to one of `BLOCKS` that is.
    """
    for start in range(0, len(outs["data"]), CHUNK_PANELS):
        rows = raw.data[start * PANEL : (start + CHUNK_PANELS) * PANEL]
        chunk = RawTensor(raw.format, (len(rows), raw.shape[1]), rows)
        fields = _fields(chunk, scheme)
        for part, out in outs.items():
            _pack(fields[part], out[start : start + CHUNK_PANELS])


def _fields(raw: RawTensor, scheme: str) -> dict[str, np.ndarray]:
    """The parts row by row: [rows, blocks, ...] of bytes, or of factors."""
    if scheme.upper() not in BLOCKS:
        return unpack(raw)
    blocks = to_blocks(raw, scheme.upper()).data
    return {"data" if name == "q" else name: blocks[name] for name in blocks.dtype.names}


def _pack(rows: np.ndarray, out: np.ndarray) -> None:
    """Transposes whole panels: [rows, blocks, ..] to [panels, blocks, .., 16, 4 bytes or none]."""
    panels, blocks = out.shape[:2]
    missing = panels * PANEL - len(rows)
    if missing:
        rows = np.concatenate([rows, np.zeros((missing, *rows.shape[1:]), rows.dtype)])
    if out.shape[-1] == 4:
        rows, out = np.ascontiguousarray(rows).view(np.uint32), out.view(np.uint32)
    source = rows.reshape(panels, PANEL, blocks, -1)
    out.reshape(panels, blocks, -1, PANEL)[...] = source.transpose(0, 2, 3, 1)
