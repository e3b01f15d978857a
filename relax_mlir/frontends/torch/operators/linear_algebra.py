"""Products of matrices."""

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
    multiply,
    permute,
    reduce,
    reshape,
    scalar,
    subtract,
)
from relax_mlir.dialects import graph
from relax_mlir.errors import ModelError

from ..call import Call
from ..registry import operator
from .reductions import norm_of


@operator("mm", "bmm", "matmul", "mv", "dot")
def matmul(call: Call, a: ir.Value, b: ir.Value) -> ir.Value:
    """A product of matrices, in batches."""
    return d.matmul(a, b)


@operator("linear")
def linear(call: Call, x: ir.Value, weight: ir.Value, bias: ir.Value | None = None) -> ir.Value:
    """x W^T + b."""
    product = d.matmul(x, permute(weight, list(reversed(range(len(dims_of(weight)))))))
    return product if bias is None else add(product, bias)


@operator("addmm", "baddbmm", "addmv")
def addmm(
    call: Call, c: ir.Value, a: ir.Value, b: ir.Value, beta: Any = 1, alpha: Any = 1
) -> ir.Value:
    """beta * C + alpha * A B."""
    product = d.matmul(a, b)
    product = product if alpha == 1 else multiply(product, call.tensor(alpha, call.element))
    if beta == 0:
        return product
    return add(product, c if beta == 1 else multiply(c, call.tensor(beta, call.element)))


@operator("_grouped_mm", "transformers::grouped_mm_fallback")
def grouped_mm(
    call: Call, x: ir.Value, weights: ir.Value, ends: ir.Value | None = None, *args: Any
) -> ir.Value:
    """Products of rows with the matrix of their group."""
    if ends is None or args:
        raise ModelError("has no ends of groups, or a bias, which is not supported")
    return d.grouped_mm(x, weights, ends)


@operator("einsum")
def einsum(call: Call, equation: str, operands: Any, path: Any = None) -> ir.Value:
    """Sums of products, by an equation."""
    return d.einsum(equation.replace(" ", ""), *operands)


@operator("addbmm")
def addbmm(
    call: Call, c: ir.Value, a: ir.Value, b: ir.Value, beta: Any = 1, alpha: Any = 1
) -> ir.Value:
    """beta * C + alpha * the sum of A B over a batch."""
    product = reduce(graph.SumOp, d.matmul(a, b), [0])
    product = multiply(product, call.tensor(alpha, call.element))
    return add(product, multiply(c, call.tensor(beta, call.element))) if beta else product


@operator("_trilinear")
def trilinear(
    call: Call,
    a: ir.Value,
    b: ir.Value,
    c: ir.Value,
    expand1: Sequence[int],
    expand2: Sequence[int],
    expand3: Sequence[int],
    sumdim: Sequence[int],
    unroll_dim: int = 1,
) -> ir.Value:
    """A sum of products of three tensors, with dims of extent 1 at given axes."""
    parts = zip((a, b, c), (expand1, expand2, expand3), strict=True)
    first, second, third = (expand_dims(x, sorted(axes)) for x, axes in parts)
    return reduce(graph.SumOp, multiply(multiply(first, third), second), sorted(sumdim))


@operator("_cdist_forward")
def cdist(call: Call, a: ir.Value, b: ir.Value, order: float, mode: int | None) -> ir.Value:
    """Distances of all pairs of rows."""
    rank = call.rank(a)
    pairs = subtract(expand_dims(a, [rank - 1]), expand_dims(b, [call.rank(b) - 2]))
    return norm_of(pairs, order, [call.rank(pairs) - 1], False)


@operator("dist")
def dist(call: Call, a: ir.Value, b: ir.Value, order: float = 2) -> ir.Value:
    """The norm of a difference."""
    difference = subtract(a, b)
    return norm_of(difference, order, list(range(call.rank(difference))), False)


@operator("linalg_inv_ex")
def inverse(call: Call, x: ir.Value, check_errors: bool = False) -> Any:
    """The inverse, and 0, which says that there is one."""
    return d.inverse(x), _success(call, 1)


@operator("linalg_cholesky_ex")
def cholesky_ex(call: Call, x: ir.Value, upper: bool = False, check_errors: bool = False) -> Any:
    """The Cholesky factor, and 0."""
    return d.cholesky(x, lower=not upper), _success(call, 1)


def _success(call: Call, index: int) -> ir.Value:
    """What says that a factorization exists, which nothing here finds out."""
    i32 = ir.IntegerType.get_signless(32)
    return broadcast_to(scalar(0, i32), call.exprs(call.value[index].shape))


@operator("cholesky")
def cholesky(call: Call, x: ir.Value, upper: bool = False) -> ir.Value:
    """The Cholesky factor."""
    return d.cholesky(x, lower=not upper)


@operator("cholesky_solve")
def cholesky_solve(call: Call, b: ir.Value, factor: ir.Value, upper: bool = False) -> ir.Value:
    """x with A x = b, by the Cholesky factor of A."""
    b, factor = _same_batch(b, factor)
    settings = {"lower": not upper}
    first = d.triangular_solve(factor, b, transpose=upper, **settings)
    return d.triangular_solve(factor, first, transpose=not upper, **settings)


@operator("cholesky_inverse")
def cholesky_inverse(call: Call, factor: ir.Value, upper: bool = False) -> ir.Value:
    """The inverse of A, by its Cholesky factor."""
    *lead, n, _ = dims_of(factor)
    eye = broadcast_to(emit(graph.EyeOp, shape=[n, n], k=0, dtype=call.element), [*lead, n, n])
    return cholesky_solve(call, eye, factor, upper)


def _same_batch(a: ir.Value, b: ir.Value) -> tuple[ir.Value, ir.Value]:
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
    a, b = _same_batch(a, b)
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
    a, b = _same_batch(a, b)
    settings = {"lower": not upper, "transpose": transpose, "unit_diagonal": unitriangular}
    return d.triangular_solve(a, b, **settings), a


@operator("_linalg_det")
def det(call: Call, x: ir.Value) -> Sequence[Any]:
    """The determinant; what it is computed by is for gradients alone."""
    return d.det(x), None, None


@operator("_linalg_slogdet")
def slogdet(call: Call, x: ir.Value) -> Sequence[Any]:
    """The sign of the determinant, and the logarithm of its absolute value."""
    value = d.det(astype(x, ir.F64Type.get()))
    size = emit(graph.LogOp, emit(graph.AbsOp, value))
    return astype(emit(graph.SignOp, value), call.element), astype(size, call.element), None, None


@operator("_linalg_solve_ex")
def solve_ex(
    call: Call, a: ir.Value, b: ir.Value, *, left: bool = True, check_errors: bool = False
) -> Sequence[Any]:
    """x with A x = b, or x A = b; what it is computed by is for gradients alone."""
    is_vector = len(call.first.shape) == call.rank(a) - 1
    right = expand_dims(b, [call.rank(b)]) if is_vector else b
    if not left:
        a, right = _transposed(a), _transposed(right)
    x = d.solve(*_same_batch(a, right))
    x = x if left else _transposed(x)
    return reshape(x, call.dims) if is_vector else x, None, None, _success(call, 3)


def _transposed(x: ir.Value) -> ir.Value:
    rank = len(dims_of(x))
    return permute(x, [*range(rank - 2), rank - 1, rank - 2])
