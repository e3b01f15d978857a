"""Converts matrices of a file to the blocks of `quantization.py`, rounding if necessary."""

import numpy as np

from relax_mlir.errors import ModelError
from relax_mlir.llm.formats.quantization import BLOCKS, RawTensor
from relax_mlir.panels import is_representable, round_blocks


def to_blocks(raw: RawTensor, format: str) -> RawTensor:
    """The matrix in a format of `BLOCKS`: itself if it has that format, else rounded.

    Its last dim must be a multiple of 32. Rounds as `graph.quantize` does. Raises ModelError if an
    element is too large for scales of float16, or is NaN.
    """
    if raw.format == format:
        return raw
    rows, columns = raw.shape
    values = raw.to_f32().reshape(rows, columns // 32, 32)
    blocks = np.empty(values.shape[:2], BLOCKS[format])
    with np.errstate(invalid="ignore"):  # of NaN
        parts = round_blocks(values, format.lower())
    if not is_representable(parts):
        greatest = np.abs(values).max()
        raise ModelError(
            f"has {greatest:g}, which exceeds the range of {format}, whose scales are float16; "
            "weights of f32 or bf16 can represent it"
        )
    for part, array in parts.items():
        blocks["q" if part == "data" else part] = array
    return RawTensor(format, raw.shape, blocks)
