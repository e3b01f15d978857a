"""Products of matrices that four warps compute, of sides in memory of their group.

Source: NVIDIA, PTX ISA 8.5, wgmma.mma_async: register fragments, matrix descriptor, swizzling.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

WARPGROUP = 128
ROWS, DEPTH = 64, 16
"""Rows of the result, and elements along k, of 16 bits."""
_UNIT, _ROW, _BLOCK = 16, 128, 64
"""Bytes of a unit and of a row, and elements of a row."""


def swizzled(address: np.ndarray) -> np.ndarray:
    """Where memory of a group has what would be at an address: unit u of row r is at u xor r."""
    return address ^ (address // _ROW % 8 * _UNIT)


@dataclass(frozen=True)
class Descriptor:
    """Where a side begins, and how far apart its blocks and its groups of eight rows are: bytes."""

    start: int
    blocks: int
    rows: int

    @staticmethod
    def of(word: int) -> "Descriptor":
        """What 64 bits say; raises ValueError for other layouts than that of rows of 128 bytes."""
        if word >> 62 != 1 or word >> 49 & 7:
            raise ValueError(f"a descriptor of a layout that is not known: {word:#x}")
        start, blocks, rows = (_UNIT * (word >> at & 0x3FFF) for at in (0, 16, 32))
        return Descriptor(start, blocks, rows)

    def addresses(self, extent: int, transposes: bool) -> np.ndarray:
        """The address of each element of a side: [extent, k].

        Rows are along k, unless it `transposes`. Of each 1024 bytes, unit u of row r is at u xor r.
        """
        i, k = np.mgrid[:extent, :DEPTH]
        if transposes:
            offset = i // _BLOCK * self.blocks + k // 8 * self.rows + k % 8 * _ROW + i % _BLOCK * 2
        else:
            offset = i // 8 * self.rows + i % 8 * _ROW + k * 2
        return swizzled(self.start + offset)


@dataclass(frozen=True)
class WarpgroupProduct:
    """D = A * B + D of a warpgroup, B having `columns`; it is exact but for the last step."""

    columns: int
    transposes: tuple[bool, bool]

    def compute(
        self, named: tuple[int, int], load: Callable[[np.ndarray], np.ndarray], total: np.ndarray
    ) -> np.ndarray:
        """The sums of each thread; `load` returns the values at addresses."""
        a, b = (load(addresses).astype(np.float64) for addresses in self.addresses(named))
        rows, columns = self._positions
        result = np.zeros((ROWS, self.columns))
        result[rows, columns] = total
        return (result + a @ b.T).astype(np.float32)[rows, columns]

    def addresses(self, named: tuple[int, int]) -> list[np.ndarray]:
        """The addresses of the elements of both sides, which descriptors name."""
        sides = zip(named, (ROWS, self.columns), self.transposes, strict=True)
        return [Descriptor.of(word).addresses(extent, flag) for word, extent, flag in sides]

    @property
    def _positions(self) -> tuple[np.ndarray, np.ndarray]:
        """Rows and columns of sums, by thread and position."""
        thread, i = np.arange(WARPGROUP)[:, None], np.arange(self.columns // 2)
        rows = thread // 32 * 16 + thread % 32 // 4 + 8 * (i // 2 % 2)
        return rows, 8 * (i // 4) + 2 * (thread % 4) + i % 2
