"""Operators that find positions."""

import numpy as np

from relax_mlir.interpreter.elements import exact as read

__all__ = ["read"]


def argmax(x: np.ndarray, *, axis: int, keepdims: bool) -> np.ndarray:
    """The first position of the greatest element or of a NaN; 0 of none."""
    return np.argmax(_at_least_one(x, axis), axis, keepdims=keepdims)


def argmin(x: np.ndarray, *, axis: int, keepdims: bool) -> np.ndarray:
    """The first position of the least element or of a NaN; 0 of none."""
    return np.argmin(_at_least_one(x, axis), axis, keepdims=keepdims)


def _at_least_one(x: np.ndarray, axis: int) -> np.ndarray:
    if x.shape[axis]:
        return x
    shape = list(x.shape)
    shape[axis] = 1
    return np.zeros(shape, x.dtype)
