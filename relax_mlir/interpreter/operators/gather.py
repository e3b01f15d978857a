"""Operators that pick elements by tensors of indices, which are clamped."""

from collections.abc import Sequence

import numpy as np

from relax_mlir.interpreter.elements import stored as read

__all__ = ["read"]


def gather_elements(x: np.ndarray, indices: np.ndarray, *, axis: int) -> np.ndarray:
    """Each element is that of the index along the axis, at its own position elsewhere."""
    positions: list[np.ndarray] = list(np.indices(indices.shape, sparse=True))
    positions[axis] = clamped(indices, x.shape[axis])
    return x[tuple(positions)]


def gather_nd(x: np.ndarray, indices: np.ndarray, *, batch_dims: int) -> np.ndarray:
    """The slice of each tuple of indices."""
    shape = indices.shape[:-1]
    positions = [
        np.arange(extent).reshape(-1, *[1] * (len(shape) - axis - 1))
        for axis, extent in enumerate(shape[:batch_dims])
    ]
    for number in range(indices.shape[-1]):
        positions.append(clamped(indices[..., number], x.shape[batch_dims + number]))
    found = x[tuple(positions)] if positions else x
    return np.broadcast_to(found, (*shape, *x.shape[len(positions) :]))


def index_tensor(x: np.ndarray, *indices: np.ndarray, axes: Sequence[int]) -> np.ndarray:
    """NumPy's own indexing; where no element is picked, an index of it need not be there."""
    where: list[slice | np.ndarray] = [slice(None)] * x.ndim
    for axis, positions in zip(axes, np.broadcast_arrays(*indices), strict=True):
        where[axis] = clamped(positions, x.shape[axis])
    return x[tuple(where)]


def clamped(indices: np.ndarray, extent: int) -> np.ndarray:
    """Indices within an axis."""
    return np.clip(signed(indices), 0, max(extent - 1, 0))


def signed(indices: np.ndarray) -> np.ndarray:
    """Indices as i64, of which those beyond are the greatest."""
    if indices.dtype == np.uint64:
        indices = np.minimum(indices, np.uint64(2**63 - 1))
    return indices.astype(np.int64)
