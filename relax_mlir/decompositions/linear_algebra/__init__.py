"""Systems of linear equations and factors of matrices: loops over rows, of batches of matrices."""

from .elimination import det, inverse, solve
from .triangular import cholesky, triangular_solve

__all__ = ["cholesky", "det", "inverse", "solve", "triangular_solve"]
