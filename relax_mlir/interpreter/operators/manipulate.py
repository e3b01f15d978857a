"""Operators that move elements of any type."""

from collections.abc import Sequence

import numpy as np

from relax_mlir.interpreter.elements import stored as read

__all__ = ["read"]


def permute_dims(x: np.ndarray, *, axes: Sequence[int]) -> np.ndarray:
    """Result dim i is operand dim axes[i]."""
    return np.transpose(x, axes)


def reshape(x: np.ndarray, *, shape: Sequence[int]) -> np.ndarray:
    """The same elements in row-major order."""
    return np.reshape(x, shape)


def expand_dims(x: np.ndarray, *, axes: Sequence[int]) -> np.ndarray:
    """Dims of extent 1 at positions of the result."""
    return np.expand_dims(x, tuple(axes))


def squeeze(x: np.ndarray, *, axes: Sequence[int]) -> np.ndarray:
    """Removes dims of extent 1."""
    return np.squeeze(x, tuple(axes))


def broadcast_to(x: np.ndarray, *, shape: Sequence[int]) -> np.ndarray:
    """Repeats dims of extent 1."""
    return np.broadcast_to(x, shape)


def concat(*parts: np.ndarray, axis: int) -> np.ndarray:
    """Joins tensors along one axis."""
    return np.concatenate(parts, axis)


def split(x: np.ndarray, *, sizes: Sequence[int], axis: int) -> list[np.ndarray]:
    """Splits into parts, which have all elements together."""
    if sum(sizes) != x.shape[axis]:
        raise ValueError(f"extents {list(sizes)} do not sum to {x.shape[axis]}")
    return np.split(x, np.cumsum(sizes, dtype=np.int64)[:-1], axis)
