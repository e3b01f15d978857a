"""Operators that find indices."""

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
