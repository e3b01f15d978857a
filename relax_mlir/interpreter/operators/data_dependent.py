"""Operators whose data decide how large results are, by NumPy's functions."""

from collections.abc import Sequence

import numpy as np

from relax_mlir.interpreter.elements import exact as read

__all__ = ["read"]


def nonzero(x: np.ndarray) -> np.ndarray:
    """A row of indices for each axis."""
    return np.stack(np.nonzero(np.atleast_1d(x)))


def unique(x: np.ndarray, *, axes: Sequence[int], sorted: bool) -> list[np.ndarray]:
    """Slices as tuples, which are collected in the order of their first occurrence."""
    axis = axes[0] if axes else 0
    source = x if axes else x.reshape(-1)
    known: dict[tuple, int] = {}
    inverse: list[int] = []
    indices: list[int] = []
    for position, part in enumerate(np.moveaxis(source, axis, 0)):
        key = tuple((bool(e != e), 0 if e != e else e.item()) for e in np.atleast_1d(part).flat)
        if key not in known:
            known[key] = len(known)
            indices.append(position)
        inverse.append(known[key])
    keys = _in_order(list(known)) if sorted else list(known)
    order = np.array([known[key] for key in keys], np.int64)
    ranks = np.argsort(order)
    first = np.array(indices, np.int64)[order]
    counts = np.bincount(np.array(inverse, np.int64), minlength=len(known))[order]
    return [np.take(source, first, axis), first, ranks[np.array(inverse, np.int64)], counts]


def _in_order(keys: list[tuple]) -> list[tuple]:
    """Keys of slices, by the first elements that differ."""
    return sorted(keys)


def repeat_interleave(x: np.ndarray, repeats: np.ndarray, *, axis: int) -> np.ndarray:
    """NumPy's own."""
    counts = repeats.astype(np.int64)
    if (counts < 0).any() or not counts.sum(dtype=np.float64) < _MOST:
        raise ValueError("has a negative dim")
    return np.repeat(x, counts, axis)


def range_of(start: np.ndarray, stop: np.ndarray, step: np.ndarray) -> np.ndarray:
    """Counted in Python's integers, or in float64."""
    first, last, by = start[()], stop[()], step[()]
    is_integer = start.dtype.kind in "iu"
    with np.errstate(all="ignore"):
        rough = np.float64(last) - np.float64(first)
        rough = np.abs(rough) if is_integer else rough / by
        if by == 0 or not rough < _MOST:
            raise ValueError("has a negative dim")
        count = -(-(int(last) - int(first)) // int(by)) if is_integer else np.ceil(rough)
        steps = np.arange(max(0, int(count) if count > 0 else 0))
        return first + (steps.astype(start.dtype) if is_integer else steps) * by


_MOST = 2.0**62
