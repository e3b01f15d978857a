"""Operators of linear algebra."""

import numpy as np

from relax_mlir.interpreter.elements import accumulated
from relax_mlir.interpreter.elements import exact as read

__all__ = ["read"]


def matmul(lhs: np.ndarray, rhs: np.ndarray, *, element: str) -> np.ndarray:
    """The product of matrices, of leading dims that broadcast."""
    size = lambda: np.matmul(np.abs(lhs), np.abs(rhs))  # noqa: E731
    return accumulated(np.matmul(lhs, rhs), element, np.float64(lhs.shape[-1]), size)
