"""Linear equations, and factors of matrices."""

from collections.abc import Sequence
from typing import Any

from relax_mlir import decompositions as d
from relax_mlir.bindings import ir
from relax_mlir.decompositions.emit import (
    add,
    astype,
    broadcast_to,
    dims_of,
    emit,
    expand_dims,
    permute,
    reshape,
    scalar,
    subtract,
)
from relax_mlir.dialects import graph
from relax_mlir.errors import ModelError

from ..call import Call
from ..registry import operator


@operator("linalg_inv_ex")
def inverse(call: Call, x: ir.Value, check_errors: bool = False) -> Any:
    """The inverse, and whether there is one."""
    return d.inverse_ex(x)


@operator("linalg_cholesky_ex")
def cholesky_ex(call: Call, x: ir.Value, upper: bool = False, check_errors: bool = False) -> Any:
    """The Cholesky factor, and whether there is one."""
    return d.cholesky_ex(x, lower=not upper)


@operator("cholesky")
def cholesky(call: Call, x: ir.Value, upper: bool = False) -> ir.Value:
    """The Cholesky factor."""
    return d.cholesky(x, lower=not upper)


@operator("cholesky_solve")
def cholesky_solve(call: Call, b: ir.Value, factor: ir.Value, upper: bool = False) -> ir.Value:
    """x with A x = b, by the Cholesky factor of A."""
    b, factor = same_batch(b, factor)
    settings = {"lower": not upper}
    first = d.triangular_solve(factor, b, transpose=upper, **settings)
    return d.triangular_solve(factor, first, transpose=not upper, **settings)


@operator("cholesky_inverse")
def cholesky_inverse(call: Call, factor: ir.Value, upper: bool = False) -> ir.Value:
    """The inverse of A, by its Cholesky factor."""
    *lead, n, _ = dims_of(factor)
    eye = broadcast_to(emit(graph.EyeOp, shape=[n, n], k=0, dtype=call.element), [*lead, n, n])
    return cholesky_solve(call, eye, factor, upper)


def same_batch(a: ir.Value, b: ir.Value) -> tuple[ir.Value, ir.Value]:
    """Matrices in batches of the same dims."""
    rank = max(len(dims_of(a)), len(dims_of(b)))
    own = [expand_dims(x, range(rank - len(dims_of(x)))) for x in (a, b)]
    lead = []
    for one, other in zip(dims_of(own[0])[:-2], dims_of(own[1])[:-2], strict=True):
        lead.append(other if one == 1 else one)
    first, second = (broadcast_to(x, [*lead, *dims_of(x)[-2:]]) for x in own)
    return first, second


@operator("linalg_solve_triangular")
def solve_triangular(
    call: Call,
    a: ir.Value,
    b: ir.Value,
    *,
    upper: bool,
    left: bool = True,
    unitriangular: bool = False,
) -> ir.Value:
    """x with A x = b, or x A = b, of triangular A."""
    a, b = same_batch(a, b)
    return d.triangular_solve(a, b, left=left, lower=not upper, unit_diagonal=unitriangular)


@operator("triangular_solve")
def triangular_solve(
    call: Call,
    b: ir.Value,
    a: ir.Value,
    upper: bool = True,
    transpose: bool = False,
    unitriangular: bool = False,
) -> tuple[ir.Value, ir.Value]:
    """x with A x = b of triangular A, and A."""
    a, b = same_batch(a, b)
    settings = {"lower": not upper, "transpose": transpose, "unit_diagonal": unitriangular}
    return d.triangular_solve(a, b, **settings), a


@operator("_linalg_det")
def det(call: Call, x: ir.Value) -> Sequence[Any]:
    """The determinant; what it is computed by is for gradients alone."""
    return d.det(x), None, None


@operator("_linalg_slogdet")
def slogdet(call: Call, x: ir.Value) -> Sequence[Any]:
    """The sign of the determinant, and the logarithm of its absolute value."""
    return *d.slogdet(x), None, None


@operator("_linalg_solve_ex")
def solve_ex(
    call: Call, a: ir.Value, b: ir.Value, *, left: bool = True, check_errors: bool = False
) -> Sequence[Any]:
    """x with A x = b, or x A = b; what it is computed by is for gradients alone."""
    is_vector = len(call.first.shape) == call.rank(a) - 1
    right = expand_dims(b, [call.rank(b)]) if is_vector else b
    if not left:
        a, right = transposed(a), transposed(right)
    x, info = d.solve_ex(*same_batch(a, right))
    x = x if left else transposed(x)
    return reshape(x, call.dims) if is_vector else x, None, None, info


def transposed(x: ir.Value) -> ir.Value:
    """Matrices with their last axes exchanged."""
    rank = len(dims_of(x))
    return permute(x, [*range(rank - 2), rank - 1, rank - 2])


@operator("linalg_lu_factor_ex")
def lu_factor_ex(
    call: Call, a: ir.Value, *, pivot: bool = True, check_errors: bool = False
) -> Sequence[ir.Value]:
    """L and U in one, pivots from 1, and whether U has no 0 on its diagonal."""
    _require_pivots(pivot)
    packed, pivots, info = d.lu_factor_ex(a)
    return packed, astype(add(pivots, 1), ir.IntegerType.get_signless(32)), info


@operator("linalg_lu")
def lu(call: Call, a: ir.Value, *, pivot: bool = True) -> Sequence[ir.Value]:
    """P, L and U."""
    _require_pivots(pivot)
    return d.lu_unpack(*d.lu_factor(a))


def _require_pivots(pivot: bool) -> None:
    if not pivot:
        raise ModelError("has pivot=False, which is not supported")


@operator("lu_unpack")
def lu_unpack(
    call: Call,
    packed: ir.Value,
    pivots: ir.Value,
    unpack_data: bool = True,
    unpack_pivots: bool = True,
) -> Sequence[ir.Value]:
    """P, L and U, of those that are asked for; others are empty."""
    p, lower, upper = d.lu_unpack(packed, _from_zero(pivots))
    empty = broadcast_to(scalar(0, call.element), [0])
    factors = (lower, upper) if unpack_data else (empty, empty)
    return p if unpack_pivots else empty, *factors


@operator("linalg_lu_solve")
def lu_solve(
    call: Call,
    packed: ir.Value,
    pivots: ir.Value,
    b: ir.Value,
    *,
    left: bool = True,
    adjoint: bool = False,
) -> ir.Value:
    """x with A x = b, or x A = b, by the factors of A, which may be transposed."""
    right = b if left else transposed(b)
    packed, right = same_batch(packed, right)
    *lead, n, _ = dims_of(packed)
    pivots = broadcast_to(_from_zero(pivots), [*lead, n])
    x = d.lu_solve(packed, pivots, right, transpose=adjoint == left)
    return x if left else transposed(x)


def _from_zero(pivots: ir.Value) -> ir.Value:
    """LAPACK's pivots, which count from 1, as our own."""
    return subtract(astype(pivots, ir.IntegerType.get_signless(64)), 1)


@operator("linalg_qr")
def qr(call: Call, a: ir.Value, mode: str = "reduced") -> Sequence[ir.Value]:
    """Q with orthonormal columns, and R above its diagonal; in mode "r" Q is empty."""
    q, r = d.qr(a, complete=mode == "complete")
    return broadcast_to(scalar(0, call.element), [0]) if mode == "r" else q, r


@operator("geqrf")
def geqrf(call: Call, a: ir.Value) -> Sequence[ir.Value]:
    """R with reflectors below its diagonal, and their factors."""
    return d.geqrf(a)


@operator("linalg_householder_product", "orgqr")
def householder_product(call: Call, packed: ir.Value, taus: ir.Value) -> ir.Value:
    """The first columns of the product of reflectors."""
    return d.householder_product(packed, taus)


@operator("ormqr")
def ormqr(
    call: Call,
    packed: ir.Value,
    taus: ir.Value,
    c: ir.Value,
    left: bool = True,
    transpose: bool = False,
) -> ir.Value:
    """What the product of reflectors makes of matrices."""
    return d.ormqr(packed, taus, c, left=left, transpose=transpose)


@operator("_linalg_eigh")
def eigh(call: Call, a: ir.Value, uplo: str = "L", compute_v: bool = True) -> Sequence[ir.Value]:
    """Eigenvalues of symmetric matrices, and eigenvectors on demand."""
    lower = uplo.upper() == "L"
    if compute_v:
        return d.eigh(a, lower=lower)
    return d.eigvalsh(a, lower=lower), broadcast_to(scalar(0, call.element), [0])


@operator("_linalg_svd")
def svd(
    call: Call,
    a: ir.Value,
    full_matrices: bool = False,
    compute_uv: bool = True,
    *,
    driver: str | None = None,
) -> Sequence[ir.Value]:
    """U, singular values, and V transposed; values alone if that is all that is asked for."""
    if compute_uv:
        return d.svd(a, full_matrices=full_matrices)
    empty = broadcast_to(scalar(0, call.element), [0])
    return empty, d.svdvals(a), empty


@operator("linalg_pinv.atol_rtol_tensor", "linalg_pinv.atol_rtol_float")
def pinv(
    call: Call, a: ir.Value, *, atol: Any = None, rtol: Any = None, hermitian: bool = False
) -> ir.Value:
    """The pseudoinverse, where small singular values count as 0."""
    bounds = [None if each is None else call.tensor(each, call.element) for each in (atol, rtol)]
    return d.pinv(a, atol=bounds[0], rtol=bounds[1], hermitian=hermitian)


@operator("linalg_pinv", "linalg_pinv.rcond_tensor")
def pinv_rcond(call: Call, a: ir.Value, rcond: Any, hermitian: bool = False) -> ir.Value:
    """The same, by a bound that is relative to the greatest one."""
    return pinv(call, a, rtol=rcond, hermitian=hermitian)


@operator("linalg_matrix_exp")
def matrix_exp(call: Call, a: ir.Value) -> ir.Value:
    """The exponential of matrices."""
    return d.matrix_exp(a)
