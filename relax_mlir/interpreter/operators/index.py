"""Operators that select elements."""

from collections.abc import Sequence

import numpy as np

from relax_mlir.interpreter.elements import stored as read

from .gather import clamped

__all__ = ["read"]


def take(x: np.ndarray, indices: np.ndarray, *, axis: int) -> np.ndarray:
    """Slices by index, which is clamped to the axis."""
    return np.take(x, clamped(indices, x.shape[axis]), axis)


def strided_slice(
    x: np.ndarray,
    *,
    axes: Sequence[int],
    begin: Sequence[int],
    end: Sequence[int],
    strides: Sequence[int],
) -> np.ndarray:
    """Elements begin, begin + stride, ... below end of each listed axis."""
    where = [slice(None)] * x.ndim
    for axis, first, last, stride in zip(axes, begin, end, strides, strict=True):
        if not 0 <= first <= last <= x.shape[axis]:
            raise ValueError(f"cannot slice {first} to {last} of dim {axis} of {x.shape[axis]}")
        where[axis] = slice(first, last, stride)
    return x[tuple(where)]


def dynamic_slice(x: np.ndarray, starts: np.ndarray, *, sizes: Sequence[int]) -> np.ndarray:
    """A part that begins where it fits."""
    return x[part_at(x.shape, starts, sizes)]


def part_at(shape: Sequence[int], starts: np.ndarray, sizes: Sequence[int]) -> tuple[slice, ...]:
    """The slices of a part that begins as near as possible to where it is said to."""
    extents = zip(starts, shape, sizes, strict=True)
    begins = [min(max(int(i), 0), n - size) for i, n, size in extents]
    return tuple(slice(begin, begin + size) for begin, size in zip(begins, sizes, strict=True))
