"""Tensors in memory, of which devices copy boxes: what a launch passes to kernels.

Source: NVIDIA, CUDA driver API, cuTensorMapEncodeTiled; PTX ISA 8.5, tensors.
"""

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from .warpgroups import swizzled

ELEMENT_BYTES, UNIT_BYTES, ROW_BYTES = 2, 16, 128
"""Of an element, of a unit, which stays whole in memory of a group, and of rows of a box."""
_MOST_DIMS, _MOST_BOX = 5, 256


@dataclass(frozen=True)
class TensorMap:
    """A tensor of 16-bit elements from an address on; dims are in order, the last one contiguous.

    `strides` are those of all dims but the last one, in bytes, `box` the extents of a copy;
    `owner` keeps the memory. Raises ValueError for what no device takes.
    """

    address: int
    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    box: tuple[int, ...]
    owner: Any = None

    def __post_init__(self) -> None:
        if not len(self.sizes) == len(self.strides) + 1 == len(self.box) <= _MOST_DIMS:
            raise ValueError(f"a tensor map of {len(self.sizes)} dims and {len(self.box)} of a box")
        if self.address % UNIT_BYTES or any(s % UNIT_BYTES for s in self.strides):
            raise ValueError(f"a tensor map of rows that are no multiple of {UNIT_BYTES} bytes")
        if not all(0 < size < 1 << 32 for size in self.sizes):
            raise ValueError(f"a tensor map of sizes {list(self.sizes)}")
        if not all(0 <= stride < 1 << 40 for stride in self.strides):
            raise ValueError(f"a tensor map of strides {list(self.strides)}")
        if max(self.box) > _MOST_BOX or self.box[-1] * ELEMENT_BYTES != ROW_BYTES:
            raise ValueError(f"a tensor map of boxes {list(self.box)}")

    @property
    def memory(self) -> np.ndarray:
        """The bytes from the address on, up to the last element."""
        steps = (*self.strides, ELEMENT_BYTES)
        last = sum((size - 1) * step for size, step in zip(self.sizes, steps, strict=True))
        memory: Any = (ctypes.c_uint8 * (last + ELEMENT_BYTES)).from_address(self.address)
        return np.ctypeslib.as_array(memory)

    @property
    def box_bytes(self) -> int:
        """The bytes of a copy."""
        return prod(self.box) * ELEMENT_BYTES

    def offsets(self, begin: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
        """Where elements of a box are from the address on, and which of them the tensor has."""
        offset, inside = np.zeros(self.box, np.int64), np.ones(self.box, bool)
        steps = (*self.strides, ELEMENT_BYTES)
        axes = zip(np.indices(self.box), begin, steps, self.sizes, strict=True)
        for index, first, step, size in axes:
            at = index + first
            offset += at * step
            inside &= (at >= 0) & (at < size)
        return offset.reshape(-1), inside.reshape(-1)

    def units(self, to: int) -> np.ndarray:
        """Where each unit of a box goes in memory of a group, from an address on."""
        if to % ROW_BYTES:
            raise ValueError(f"copies a box to what is no multiple of {ROW_BYTES} bytes")
        return swizzled(to + np.arange(0, self.box_bytes, UNIT_BYTES))
