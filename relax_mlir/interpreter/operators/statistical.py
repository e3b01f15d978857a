"""Reductions."""

from collections.abc import Sequence

import numpy as np

from relax_mlir.interpreter.elements import accumulated, inexact
from relax_mlir.interpreter.elements import exact as read

__all__ = ["read"]


def sum(x: np.ndarray, *, axes: Sequence[int], keepdims: bool, element: str) -> np.ndarray:
    """The sum; integers wrap."""
    total = np.sum(x, axis=axes or None, dtype=x.dtype, keepdims=keepdims)
    size = lambda: np.sum(np.abs(x), axis=axes or None, keepdims=keepdims)  # noqa: E731
    return accumulated(total, element, _count(x, axes), size)


def prod(x: np.ndarray, *, axes: Sequence[int], keepdims: bool, element: str) -> np.ndarray:
    """The product; integers wrap."""
    product = np.prod(x, axis=axes or None, dtype=x.dtype, keepdims=keepdims)
    return accumulated(product, element, _count(x, axes), lambda: np.abs(product))


def _count(x: np.ndarray, axes: Sequence[int]) -> np.floating:
    """How many elements each result is of."""
    return np.prod([x.shape[axis] for axis in axes or range(x.ndim)], dtype=np.float64)


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


def mean(x: np.ndarray, *, axes: Sequence[int], keepdims: bool, element: str) -> np.ndarray:
    """The sum divided by the count of elements."""
    count = _count(x, axes)
    total = np.sum(x, axis=axes or None, keepdims=keepdims) / count
    size = lambda: np.sum(np.abs(x), axis=axes or None, keepdims=keepdims) / count  # noqa: E731
    return accumulated(total, element, count, size)


def limits(x: np.ndarray) -> tuple[float, float]:
    """The least and the greatest value of the type."""
    if x.dtype.kind == "f":
        return -np.inf, np.inf
    return np.iinfo(x.dtype).min, np.iinfo(x.dtype).max


def variance(
    x: np.ndarray, *, axes: Sequence[int], keepdims: bool, correction: int, element: str
) -> np.ndarray:
    """Squared differences from the mean, divided by the count less a correction."""
    positions = tuple(axes) or None
    count = _count(x, axes)
    with np.errstate(all="ignore"):
        mean = np.sum(x, axis=positions, keepdims=True) / count
        centred = x - inexact(mean, element)
        total = np.sum(centred * centred, axis=positions, keepdims=keepdims)
        return total / np.maximum(count - correction, 0)


def std(
    x: np.ndarray, *, axes: Sequence[int], keepdims: bool, correction: int, element: str
) -> np.ndarray:
    """The square root of the variance."""
    return np.sqrt(
        variance(x, axes=axes, keepdims=keepdims, correction=correction, element=element)
    )


def logsumexp(x: np.ndarray, *, axes: Sequence[int], keepdims: bool) -> np.ndarray:
    """The logarithm of a sum of powers of what is left of the greatest element."""
    positions = tuple(axis % x.ndim for axis in axes) or tuple(range(x.ndim))
    top = np.max(x, axis=positions, keepdims=True, initial=-np.inf)
    top = np.where(np.isfinite(top), top, 0)
    with np.errstate(all="ignore"):
        total = top + np.log(np.sum(np.exp(x - top), axis=positions, keepdims=True))
    return total if keepdims else np.squeeze(total, positions)
