"""Formats of blocks as grids: what a block can represent, once its factors are chosen.

    value = step * code + offset,  low <= code <= high

Steps and offsets are those of groups of 16 or 32 values. They are chosen first, for weights of the
values; then codes are, by whoever rounds. Source: ggml `ggml-common.h` (layouts).
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

HALF = np.dtype("<f2")
HALF_MAX = np.float32(65504)


@dataclass(frozen=True, eq=False)
class Grid:
    """Steps and offsets of groups, float32[blocks, groups], and what files have of them, uint8."""

    step: np.ndarray
    offset: np.ndarray
    factors: tuple[np.ndarray, ...]


class Format(ABC):
    """Blocks of `block` values, in groups of `group`, with codes of `low` to `high`."""

    block: int
    group: int
    low: int
    high: int

    def grid(self, values: np.ndarray, weights: np.ndarray) -> Grid:
        """The factors of float32[blocks, block] for weights that broadcast to that shape."""
        shape = self.block // self.group, self.group
        groups, spread = values.reshape(-1, *shape), weights.reshape(-1, *shape)
        return self._fit(groups, spread)

    @abstractmethod
    def _fit(self, groups: np.ndarray, weights: np.ndarray) -> Grid:
        """As `grid`, of [blocks, groups, group]."""

    @abstractmethod
    def pack(self, grid: Grid, codes: np.ndarray) -> np.ndarray:
        """The bytes of codes [blocks, block], uint8[blocks, bytes]."""


def in_half(values: np.ndarray) -> np.ndarray:
    """Factors in float16, clamped to its range."""
    return np.clip(values, -HALF_MAX, HALF_MAX).astype(HALF)


def bytes_of(halves: np.ndarray) -> np.ndarray:
    """The bytes of float16[blocks, n]."""
    return np.ascontiguousarray(halves).view(np.uint8)
