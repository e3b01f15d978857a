"""Super-blocks of 256 values, whose scales and minima are rounded too: Q2_K to Q6_K.

Scales of groups are multiples of a factor of float16. Source: ggml `ggml-common.h` (layouts).
"""

from abc import abstractmethod

import numpy as np

from relax_mlir.llm.rounding.grids import Format, Grid, bytes_of, in_half
from relax_mlir.llm.rounding.scales import affine, codes, symmetric

SUPER = 256


def _in_integers(factors: np.ndarray, greatest: int) -> tuple[np.ndarray, np.ndarray]:
    """The factor of each super-block in float16, and integers up to `greatest` for its groups."""
    outer = in_half(np.abs(factors).max(-1, keepdims=True) / np.float32(greatest))
    return outer, codes(factors, outer.astype(np.float32), -greatest, greatest)


class _SuperBlock(Format):
    block = SUPER

    def pack(self, grid: Grid, codes: np.ndarray) -> np.ndarray:
        """See `Format`."""
        unsigned = (codes - self.low).astype(np.uint8)
        return np.concatenate(self._parts(grid.factors, unsigned), axis=1)

    @abstractmethod
    def _parts(self, factors: tuple[np.ndarray, ...], codes: np.ndarray) -> list[np.ndarray]:
        """The bytes in their order, of codes from 0 on."""


class _WithMinima(_SuperBlock):
    """Scales and minima of `factor_bits` bits each; minima are at most 0."""

    low = 0
    factor_bits = 6

    def _fit(self, groups: np.ndarray, weights: np.ndarray) -> Grid:
        scale, minimum = affine(groups, weights, self.high, through_zero=True)
        greatest = 2**self.factor_bits - 1
        d, scales = _in_integers(scale[..., 0], greatest)
        m, minima = _in_integers(-minimum[..., 0], greatest)
        step = d.astype(np.float32) * scales
        offset = -m.astype(np.float32) * minima
        packed = self._packed(scales.astype(np.uint8), minima.astype(np.uint8))
        return Grid(step, offset, (bytes_of(d), bytes_of(m), packed))

    def _packed(self, scales: np.ndarray, minima: np.ndarray) -> np.ndarray:
        """The 12 bytes of eight scales and minima of 6 bits: the last four of each are split."""
        first = scales[:, :4] | scales[:, 4:] >> 4 << 6
        second = minima[:, :4] | minima[:, 4:] >> 4 << 6
        last = scales[:, 4:] & 15 | (minima[:, 4:] & 15) << 4
        return np.concatenate([first, second, last], axis=1)


class Q2K(_WithMinima):
    """Groups of 16, scales and minima of 4 bits."""

    group, high, factor_bits = 16, 3, 4

    def _packed(self, scales: np.ndarray, minima: np.ndarray) -> np.ndarray:
        return scales | minima << 4

    def _parts(self, factors: tuple[np.ndarray, ...], codes: np.ndarray) -> list[np.ndarray]:
        d, m, packed = factors
        return [packed, _pairs(codes), d, m]


class Q4K(_WithMinima):
    """Groups of 32."""

    group, high = 32, 15

    def _parts(self, factors: tuple[np.ndarray, ...], codes: np.ndarray) -> list[np.ndarray]:
        return [*factors, _nibbles(codes & 15)]


class Q5K(_WithMinima):
    """As Q4_K, with a fifth bit of each code."""

    group, high = 32, 31

    def _parts(self, factors: tuple[np.ndarray, ...], codes: np.ndarray) -> list[np.ndarray]:
        fifths = _bits(codes.reshape(-1, 8, 32) >> 4)
        return [*factors, fifths, _nibbles(codes & 15)]


class Q3K(_SuperBlock):
    """Groups of 16 with scales of 6 bits."""

    group, low, high = 16, -4, 3

    def _fit(self, groups: np.ndarray, weights: np.ndarray) -> Grid:
        d, scales = _in_integers(symmetric(groups, weights, self.low)[..., 0], 31)
        step = d.astype(np.float32) * scales
        stored = (scales + 32).astype(np.uint8)
        low = (stored[:, :8] & 15) | (stored[:, 8:] & 15) << 4
        high = np.bitwise_or.reduce(
            stored.reshape(-1, 4, 4) >> 4 << 2 * np.arange(4, dtype=np.uint8)[:, None], axis=1
        )
        return Grid(step, np.zeros_like(step), (low, high, bytes_of(d)))

    def _parts(self, factors: tuple[np.ndarray, ...], codes: np.ndarray) -> list[np.ndarray]:
        return [_bits(codes.reshape(-1, 8, 32) >> 2), _pairs(codes & 3), *factors]


class Q6K(_SuperBlock):
    """Groups of 16 with scales of 8 bits."""

    group, low, high = 16, -32, 31

    def _fit(self, groups: np.ndarray, weights: np.ndarray) -> Grid:
        d, scales = _in_integers(symmetric(groups, weights, self.low)[..., 0], 127)
        step = d.astype(np.float32) * scales
        stored = scales.astype(np.int8).view(np.uint8)
        return Grid(step, np.zeros_like(step), (stored, bytes_of(d)))

    def _parts(self, factors: tuple[np.ndarray, ...], codes: np.ndarray) -> list[np.ndarray]:
        nibbles = (codes & 15).reshape(-1, 2, 4, 32)
        low = (nibbles[:, :, :2] | nibbles[:, :, 2:] << 4).reshape(-1, 128)
        return [low, _pairs(codes >> 4), *factors]


def _nibbles(codes: np.ndarray) -> np.ndarray:
    """For each 64 codes 32 bytes: the low halves are the first 32."""
    halves = codes.reshape(-1, 4, 2, 32)
    return (halves[:, :, 0] | halves[:, :, 1] << 4).reshape(-1, 128)


def _pairs(codes: np.ndarray) -> np.ndarray:
    """For each 128 codes of two bits 32 bytes, of which the lowest pairs are the first 32."""
    shifts = np.arange(0, 8, 2, dtype=np.uint8)[:, None]
    return np.bitwise_or.reduce(codes.reshape(-1, 2, 4, 32) << shifts, axis=2).reshape(-1, 64)


def _bits(codes: np.ndarray) -> np.ndarray:
    """Of codes [blocks, 8, 32] of one bit 32 bytes, of which bit i is that of row i."""
    return np.bitwise_or.reduce(codes << np.arange(8, dtype=np.uint8)[:, None], axis=1)
