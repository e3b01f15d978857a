"""Blocks of 32 values with a factor of float16, or two: Q8_0, Q4_0, Q4_1, Q5_0, Q5_1."""

import numpy as np

from relax_mlir.llm.rounding.grids import Format, Grid, bytes_of, in_half
from relax_mlir.llm.rounding.scales import affine, symmetric

BLOCK = 32


class _Block(Format):
    """Codes of `bits` bits."""

    block = group = BLOCK

    def __init__(self, bits: int) -> None:
        self.bits = bits

    def pack(self, grid: Grid, codes: np.ndarray) -> np.ndarray:
        """See `Format`."""
        unsigned = (codes - self.low).astype(np.uint8)
        high = []
        if self.bits == 5:
            high = [np.packbits(unsigned >> 4, axis=1, bitorder="little")]
        low = unsigned & 15
        return np.concatenate([*grid.factors, *high, low[:, :16] | low[:, 16:] << 4], axis=1)


class Symmetric(_Block):
    """Q4_0, Q5_0: a scale of either sign."""

    def __init__(self, bits: int) -> None:
        super().__init__(bits)
        self.low, self.high = -(2 ** (bits - 1)), 2 ** (bits - 1) - 1

    def _fit(self, groups: np.ndarray, weights: np.ndarray) -> Grid:
        scale = in_half(symmetric(groups, weights, self.low)[..., 0])
        step = scale.astype(np.float32)
        return Grid(step, np.zeros_like(step), (bytes_of(scale),))


class Bytes(Symmetric):
    """Q8_0: the scale is that of the greatest magnitude."""

    def __init__(self) -> None:
        super().__init__(8)
        self.low = -127

    def _fit(self, groups: np.ndarray, weights: np.ndarray) -> Grid:
        scale = in_half(np.abs(groups).max(-1) / np.float32(127))
        step = scale.astype(np.float32)
        return Grid(step, np.zeros_like(step), (bytes_of(scale),))

    def pack(self, grid: Grid, codes: np.ndarray) -> np.ndarray:
        """See `Format`."""
        return np.concatenate([*grid.factors, codes.astype(np.int8).view(np.uint8)], axis=1)


class Affine(_Block):
    """Q4_1, Q5_1: a scale and a minimum."""

    def __init__(self, bits: int) -> None:
        super().__init__(bits)
        self.low, self.high = 0, 2**bits - 1

    def _fit(self, groups: np.ndarray, weights: np.ndarray) -> Grid:
        factors = affine(groups, weights, self.high, through_zero=False)
        scale, minimum = (in_half(factor[..., 0]) for factor in factors)
        step, offset = scale.astype(np.float32), minimum.astype(np.float32)
        return Grid(step, offset, (bytes_of(scale), bytes_of(minimum)))
