"""Systems of linear equations and factors of matrices: loops over rows, of batches of matrices."""

from .elimination import (
    det,
    inverse,
    inverse_ex,
    lu_factor,
    lu_factor_ex,
    lu_solve,
    lu_unpack,
    slogdet,
    solve,
    solve_ex,
)
from .exponential import matrix_exp
from .orthogonal import geqrf, householder_product, ormqr, qr
from .singular import pinv, svd, svdvals
from .symmetric import eigh, eigvalsh
from .triangular import cholesky, cholesky_ex, triangular_solve

__all__ = [
    "cholesky",
    "cholesky_ex",
    "det",
    "eigh",
    "eigvalsh",
    "geqrf",
    "householder_product",
    "inverse",
    "inverse_ex",
    "lu_factor",
    "lu_factor_ex",
    "lu_solve",
    "lu_unpack",
    "matrix_exp",
    "ormqr",
    "pinv",
    "qr",
    "slogdet",
    "solve",
    "solve_ex",
    "svd",
    "svdvals",
    "triangular_solve",
]
