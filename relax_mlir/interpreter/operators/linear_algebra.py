"""Operators of linear algebra."""

import numpy as np

from relax_mlir.interpreter.elements import exact as read
from relax_mlir.interpreter.elements import summed

__all__ = ["read"]


def matmul(lhs: np.ndarray, rhs: np.ndarray, *, element: str) -> np.ndarray:
    """The product of matrices, of leading dims that broadcast."""
    return summed(np.matmul(lhs, rhs), element)
