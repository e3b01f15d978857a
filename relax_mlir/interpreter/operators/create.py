"""Operators that make tensors."""

from collections.abc import Sequence

import numpy as np

from relax_mlir.bindings import ir
from relax_mlir.interpreter.elements import round_to
from relax_mlir.interpreter.elements import stored as read

__all__ = ["read"]


def full(value: np.ndarray, *, shape: Sequence[int]) -> np.ndarray:
    """The operand, repeated."""
    return np.broadcast_to(value, shape)


def arange(*, bounds: Sequence[int], dtype: ir.Type) -> np.ndarray:
    """start, start + step, ... below stop."""
    return round_to(np.array(range(*bounds), np.int64), dtype)


def one_hot(
    indices: np.ndarray, on: np.ndarray, off: np.ndarray, *, depth: Sequence[int], axis: int
) -> np.ndarray:
    """One of two values on a new axis."""
    ones = [1] * (indices.ndim + 1)
    ones[axis] = depth[0]
    return np.where(np.expand_dims(indices, axis) == np.arange(*depth).reshape(ones), on, off)


def eye(*, shape: Sequence[int], k: int, dtype: ir.Type) -> np.ndarray:
    """1 on a diagonal."""
    rows, columns = shape
    return round_to(np.eye(rows, columns, k), dtype)


def tril(x: np.ndarray, *, k: int) -> np.ndarray:
    """Elements with column <= row + k."""
    return np.tril(x, k)


def triu(x: np.ndarray, *, k: int) -> np.ndarray:
    """Elements with column >= row + k."""
    return np.triu(x, k)
