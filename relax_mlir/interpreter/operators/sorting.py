"""Operators that order elements along an axis."""

from collections.abc import Sequence

import numpy as np

from relax_mlir.interpreter.elements import exact as read

__all__ = ["read"]


def sort(x: np.ndarray, *, axis: int, descending: bool) -> list[np.ndarray]:
    """The elements in order, and where they were."""
    order = _order(x, axis, descending)
    return [np.take_along_axis(x, order, axis), order]


def topk(x: np.ndarray, *, k: Sequence[int], axis: int, largest: bool) -> list[np.ndarray]:
    """The first ones."""
    where = [slice(None)] * x.ndim
    where[axis] = slice(0, k[0])
    order = _order(x, axis, largest)[tuple(where)]
    return [np.take_along_axis(x, order, axis), order]


def _order(x: np.ndarray, axis: int, descending: bool) -> np.ndarray:
    """NumPy's stable order, in which NaN is last; from the end of what is turned round, else."""
    if not descending:
        return np.argsort(x, axis, kind="stable")
    turned = np.argsort(np.flip(x, axis), axis, kind="stable")
    return x.shape[axis] - 1 - np.flip(turned, axis)


def argsort_rows(x: np.ndarray) -> np.ndarray:
    """Sorted by each column, from the last one to the first, where the order is stable."""
    order = np.arange(x.shape[0])
    for column in reversed(range(x.shape[1])):
        order = order[np.argsort(x[order, column], kind="stable")]
    return order
