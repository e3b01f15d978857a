"""Operators that write elements by tensors of indices, and to a slice."""

from collections.abc import Sequence

import numpy as np

from relax_mlir.interpreter.elements import exact as read

from .index import part_at, strided_slice

__all__ = ["read"]

_COMBINED = {"add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}


def scatter_elements(
    x: np.ndarray, indices: np.ndarray, updates: np.ndarray, *, axis: int, reduction: str
) -> np.ndarray:
    """Each update goes where its index says along the axis, at its own position elsewhere."""
    positions: list[np.ndarray] = list(np.indices(indices.shape, sparse=True))
    positions[axis] = indices
    return _put(x, positions, updates, reduction)


def scatter_nd(
    x: np.ndarray, indices: np.ndarray, updates: np.ndarray, *, reduction: str
) -> np.ndarray:
    """A slice of updates for each tuple of indices."""
    count = indices.shape[-1]
    ones = [1] * (x.ndim - count)
    positions = [indices[..., i].reshape((*indices.shape[:-1], *ones)) for i in range(count)]
    positions += list(np.indices(x.shape[count:], sparse=True))
    return _put(x, positions, updates, reduction)


def index_put(
    x: np.ndarray,
    values: np.ndarray,
    *indices: np.ndarray,
    axes: Sequence[int],
    reduction: str,
) -> np.ndarray:
    """What NumPy's own indexing would read is written."""
    named = dict(zip((axis % x.ndim for axis in axes), np.broadcast_arrays(*indices), strict=True))
    kept = [axis for axis in range(x.ndim) if axis not in named]
    joint = next(iter(named.values())).ndim
    first = min(named) if max(named) - min(named) == len(named) - 1 else 0
    rank = len(kept) + joint
    positions = []
    for axis in range(x.ndim):
        shape = [1] * rank
        if axis in named:
            shape[first : first + joint] = named[axis].shape
            positions.append(named[axis].reshape(shape))
        else:
            at = kept.index(axis)
            shape[at if at < first else at + joint] = x.shape[axis]
            positions.append(np.arange(x.shape[axis]).reshape(shape))
    return _put(x, positions, values, reduction)


def _put(
    x: np.ndarray, positions: Sequence[np.ndarray], updates: np.ndarray, reduction: str
) -> np.ndarray:
    """Writes updates one after the other, row by row, but those outside."""
    result = x.copy()
    everywhere = np.broadcast_arrays(*positions) if positions else []
    shape = np.broadcast_shapes(*(position.shape for position in everywhere), updates.shape)
    values = np.broadcast_to(updates, shape)
    inside = np.ones(shape, np.bool_)
    for position, extent in zip(everywhere, x.shape, strict=True):
        inside &= (position >= 0) & (position < extent)
    where = tuple(
        np.broadcast_to(position, shape)[inside].astype(np.int64) for position in everywhere
    )
    if reduction == "none":
        # Of positions that are named twice NumPy keeps the last value.
        result[where] = values[inside]
    else:
        with np.errstate(all="ignore"):
            _COMBINED[reduction].at(result, where, values[inside])
    return result


def slice_scatter(
    x: np.ndarray,
    updates: np.ndarray,
    *,
    axes: Sequence[int],
    begin: Sequence[int],
    end: Sequence[int],
    strides: Sequence[int],
) -> np.ndarray:
    """The slice that would be read is replaced."""
    result = x.copy()
    part = strided_slice(result, axes=axes, begin=begin, end=end, strides=strides)
    part[...] = updates
    return result


def dynamic_update_slice(x: np.ndarray, updates: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """The part that would be read is replaced."""
    result = x.copy()
    result[part_at(x.shape, starts, updates.shape)] = updates
    return result
