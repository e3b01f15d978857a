"""Rounds a matrix column by column, where later columns make up for the errors of earlier ones.

For inputs x the product's error is (w - q) x, whose mean square is (w - q) H (w - q)', with H the
products of all pairs of inputs. A column's error is fed back to those after it by the Cholesky
factor of the inverse of H. Factors of a block are chosen once its first column is reached.

Source: GPTQ (arXiv 2210.17323), algorithm 1.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from relax_mlir.llm.rounding.grids import Format, Grid

DAMPING = 0.01
"""The share of the mean square of inputs that is added to each, so that H can be inverted."""
LAZY = 32
"""Columns after which those to come are updated; it divides all blocks."""


@dataclass(frozen=True, eq=False)
class Inputs:
    """What a matrix was multiplied with: mean squares of each input, float64[columns].

    `products` are the means of products of pairs, float32[columns, columns], of `count` inputs.
    """

    squares: np.ndarray
    count: int
    products: np.ndarray | None = None

    @cached_property
    def feedback(self) -> np.ndarray:
        """The upper Cholesky factor of the inverse of the damped products, float32."""
        assert self.products is not None
        damped = self.products.astype(np.float64)
        diagonal = np.einsum("ii->i", damped)
        diagonal += DAMPING * float(diagonal.mean()) or 1.0  # all inputs may be 0
        inverse = np.linalg.inv(np.linalg.cholesky(damped))
        inverse = inverse.T @ inverse
        return np.linalg.cholesky(inverse).T.astype(np.float32)


def round_with_feedback(format: Format, values: np.ndarray, inputs: Inputs) -> np.ndarray:
    """The bytes of float32[rows, columns], uint8[rows * blocks, bytes]."""
    factor, work = inputs.feedback, values.copy()
    weights = inputs.squares.astype(np.float32).reshape(1, -1)
    packed = []
    for begin in range(0, values.shape[1], format.block):
        block = slice(begin, begin + format.block)
        grid = format.grid(work[:, block], weights[:, block])
        codes = np.empty((len(values), format.block), np.float32)
        for first in range(0, format.block, LAZY):
            columns = slice(begin + first, begin + first + LAZY)
            errors, chosen = _columns(
                format, grid, first, work[:, columns].T, factor[columns, columns]
            )
            codes[:, first : first + LAZY] = chosen.T
            work[:, columns.stop :] -= errors.T @ factor[columns, columns.stop :]
        packed.append(format.pack(grid, codes))
    return np.stack(packed, axis=1).reshape(-1, packed[0].shape[1])


def _columns(
    format: Format, grid: Grid, first: int, values: np.ndarray, factor: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Scaled errors and codes [columns, rows] of columns that begin at `first` of a block."""
    work, errors = np.ascontiguousarray(values), np.empty_like(values)
    codes = np.empty_like(work)
    for i in range(len(work)):
        group = (first + i) // format.group
        step, offset = grid.step[:, group], grid.offset[:, group]
        quotients = (work[i] - offset) / np.where(step != 0, step, 1)
        codes[i] = np.clip(np.rint(quotients), format.low, format.high)
        errors[i] = (work[i] - (step * codes[i] + offset)) / factor[i, i]
        work[i + 1 :] -= factor[i, i + 1 :, None] * errors[i]
    return errors, codes
