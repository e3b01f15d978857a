"""Operators of linear algebra."""

import numpy as np

from relax_mlir.interpreter.elements import exact as read

__all__ = ["read"]

matmul = np.matmul
