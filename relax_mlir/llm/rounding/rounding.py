"""Rounds matrices to the formats of blocks that GGUF files have.

Without `Inputs` every value counts the same. With them the error of the product with what the
matrix is multiplied with is small: of values apart (`importance`), as llama.cpp does with a matrix
of importance, or of whole rows (`gptq`), where columns to come make up for the errors of those
that are rounded (`error_feedback.py`).

Source: llama.cpp `ggml-quants.c` (weights of values); GPTQ (arXiv 2210.17323).
"""

import numpy as np

from relax_mlir.llm.rounding.blocks import Affine, Bytes, Symmetric
from relax_mlir.llm.rounding.error_feedback import Inputs, round_with_feedback
from relax_mlir.llm.rounding.grids import Format, Grid
from relax_mlir.llm.rounding.super_blocks import Q2K, Q3K, Q4K, Q5K, Q6K

GRIDS: dict[str, Format] = {
    "Q8_0": Bytes(),
    "Q4_0": Symmetric(4),
    "Q4_1": Affine(4),
    "Q5_0": Symmetric(5),
    "Q5_1": Affine(5),
    "Q2_K": Q2K(),
    "Q3_K": Q3K(),
    "Q4_K": Q4K(),
    "Q5_K": Q5K(),
    "Q6_K": Q6K(),
}
"""The formats that can be written, by their names in ggml."""
CHUNK = 1 << 20
"""Values that are rounded at once."""


def round_matrix(values: np.ndarray, format: str, inputs: Inputs | None = None) -> np.ndarray:
    """The bytes of float32[rows, columns] in a format of `GRIDS`, uint8[rows, bytes].

    Columns are a multiple of the format's blocks, and values in the range of float16, which
    factors have.
    """
    grid, (rows, columns) = GRIDS[format], values.shape
    step = max(1, CHUNK // columns)
    chunks = [values[begin : begin + step] for begin in range(0, max(rows, 1), step)]
    blocks = [_rounded(grid, np.ascontiguousarray(c, np.float32), inputs) for c in chunks]
    width = columns // grid.block * blocks[0].shape[1]
    return np.concatenate(blocks).reshape(rows, width)


def _rounded(format: Format, values: np.ndarray, inputs: Inputs | None) -> np.ndarray:
    """The bytes of blocks, uint8[blocks, bytes]."""
    if inputs is not None and inputs.products is not None:
        return round_with_feedback(format, values, inputs)
    blocks = values.reshape(-1, format.block)
    weights: np.ndarray = np.ones((1, format.block), np.float32)
    if inputs is not None:
        weights = importance(values, inputs.squares).reshape(blocks.shape)
    grid = format.grid(blocks, weights)
    return format.pack(grid, nearest(format, grid, blocks))


def importance(values: np.ndarray, squares: np.ndarray) -> np.ndarray:
    """The weight of each value's error: mean squares of inputs, more for great values."""
    mean = np.square(values).mean(-1, keepdims=True)
    return squares.astype(np.float32) * np.sqrt(mean + np.square(values))


def nearest(format: Format, grid: Grid, blocks: np.ndarray) -> np.ndarray:
    """The codes of float32[blocks, block] that decode to the nearest values."""
    groups = blocks.reshape(-1, format.block // format.group, format.group)
    step, offset = grid.step[..., None], grid.offset[..., None]
    quotients = (groups - offset) / np.where(step != 0, step, 1)
    return np.clip(np.rint(quotients), format.low, format.high).reshape(blocks.shape)
