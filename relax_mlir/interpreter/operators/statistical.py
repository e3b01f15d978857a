"""Reductions."""

from collections.abc import Sequence

import numpy as np

from relax_mlir.interpreter.elements import exact as read

__all__ = ["read"]


def sum(x: np.ndarray, *, axes: Sequence[int], keepdims: bool) -> np.ndarray:
    """The sum; integers wrap."""
    return np.sum(x, axis=axes or None, dtype=x.dtype, keepdims=keepdims)


def prod(x: np.ndarray, *, axes: Sequence[int], keepdims: bool) -> np.ndarray:
    """The product; integers wrap."""
    return np.prod(x, axis=axes or None, dtype=x.dtype, keepdims=keepdims)


def max(x: np.ndarray, *, axes: Sequence[int], keepdims: bool) -> np.ndarray:
    """The greatest element; the least value of the type if there are none."""
    return np.max(x, axis=axes or None, keepdims=keepdims, initial=limits(x)[0])


def min(x: np.ndarray, *, axes: Sequence[int], keepdims: bool) -> np.ndarray:
    """The least element; the greatest value of the type if there are none."""
    return np.min(x, axis=axes or None, keepdims=keepdims, initial=limits(x)[1])


def any(x: np.ndarray, *, axes: Sequence[int], keepdims: bool) -> np.ndarray:
    """Whether one is true."""
    return np.any(x, axis=tuple(axes) or None, keepdims=keepdims)


def all(x: np.ndarray, *, axes: Sequence[int], keepdims: bool) -> np.ndarray:
    """Whether all are true."""
    return np.all(x, axis=tuple(axes) or None, keepdims=keepdims)


def mean(x: np.ndarray, *, axes: Sequence[int], keepdims: bool) -> np.ndarray:
    """The sum divided by the count of elements."""
    total = np.sum(x, axis=axes or None, keepdims=keepdims)
    count = np.prod([x.shape[axis] for axis in axes or range(x.ndim)], dtype=np.float64)
    return total / count


def limits(x: np.ndarray) -> tuple[float, float]:
    """The least and the greatest value of the type."""
    if x.dtype.kind == "f":
        return -np.inf, np.inf
    return np.iinfo(x.dtype).min, np.iinfo(x.dtype).max
