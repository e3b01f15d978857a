"""Operators that find indices."""

import math
from collections.abc import Sequence

import numpy as np

from relax_mlir.interpreter.elements import exact as read

__all__ = ["read"]


def argmax(x: np.ndarray, *, axis: int, keepdims: bool) -> np.ndarray:
    """The first index of the greatest element, or of a NaN; 0 if there are no elements."""
    return np.argmax(_at_least_one(x, axis), axis, keepdims=keepdims)


def argmin(x: np.ndarray, *, axis: int, keepdims: bool) -> np.ndarray:
    """The first index of the least element, or of a NaN; 0 if there are no elements."""
    return np.argmin(_at_least_one(x, axis), axis, keepdims=keepdims)


def _at_least_one(x: np.ndarray, axis: int) -> np.ndarray:
    if x.shape[axis]:
        return x
    shape = list(x.shape)
    shape[axis] = 1
    return np.zeros(shape, x.dtype)


def searchsorted(x: np.ndarray, values: np.ndarray, *, right: bool) -> np.ndarray:
    """Bisection; NumPy's own order of numbers and NaN."""
    lines = x if x.ndim == 1 else x.reshape(math.prod(x.shape[:-1]), x.shape[-1])
    result = np.zeros(values.shape, np.int64)
    for position, at in enumerate(np.ndindex(*values.shape)):
        line = lines if x.ndim == 1 else lines[position // values.shape[-1]]
        first, count = 0, len(line)
        while count:
            half = count // 2
            element, value = line[first + half], values[at]
            if not _less(value, element) if right else _less(element, value):
                first, count = first + half + 1, count - half - 1
            else:
                count = half
        result[at] = first
    return result


def _less(a: float, b: float) -> bool:
    """Whether a comes before b; NaN comes last."""
    return bool(a < b or (b != b and a == a))


def first_nonzero(x: np.ndarray, *, count: Sequence[int]) -> np.ndarray:
    """NumPy's indices, cut off or filled up."""
    result = np.full((x.ndim, count[0]), -1, np.int64)
    found = np.stack(np.nonzero(x))[:, : count[0]]
    result[:, : found.shape[1]] = found
    return result
