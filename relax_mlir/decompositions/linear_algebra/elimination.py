"""Gaussian elimination with partial pivoting: det, solve, inverse."""

from collections.abc import Sequence

from relax_mlir.bindings import ir
from relax_mlir.dialects import graph
from relax_mlir.dialects.graph import ShapeError, dims_differ

from ..emit import (
    astype,
    binary,
    broadcast_to,
    dims_of,
    divide,
    element_of,
    emit,
    expand_dims,
    greater,
    multiply,
    rank_of,
    reduce,
    reshape,
    scalar,
    subtract,
    where,
    with_dims,
)
from ..loops import Round, each_index
from .batches import matrices, require_one_batch, row_indices, square_matrices
from .triangular import solve_triangles


def det(a: ir.Value) -> ir.Value:
    """The determinants of matrices [..., n, n]; 1 of no rows. Source: ONNX `Det`; ATen `det`."""
    square = square_matrices(a)
    n = dims_of(square)[1]
    reduced, sign = _eliminated(square)
    eye = emit(graph.EyeOp, shape=[n, n], k=0, dtype=ir.IntegerType.get_signless(1))
    diagonal = reduce(graph.SumOp, where(eye, reduced, 0), [2])
    product = multiply(sign, reduce(graph.ProdOp, diagonal, [1]))
    return astype(reshape(product, dims_of(a)[:-2]), element_of(a))


def solve(a: ir.Value, b: ir.Value) -> ir.Value:
    """x with a x = b, for matrices a [..., n, n] and b [..., n, k].

    Where a is singular, x is not finite. Source: LAPACK `gesv`; ATen `linalg_solve`.
    """
    require_one_batch(a, b)
    square, right = square_matrices(a), matrices(b)
    batch, n, _ = dims_of(square)
    k = dims_of(right)[2]
    if dims_differ(n, dims_of(right)[1]):
        raise ShapeError(f"expects {n} equations, but got {dims_of(right)[1]}")
    right = with_dims(right, [batch, n, k])
    both = graph.ConcatOp.build(square, right, axis=2).operation.results[0]
    reduced, _ = _eliminated(both)
    upper, right = graph.SplitOp.build(reduced, sizes=[n, k], axis=2).operation.results
    x = solve_triangles(upper, right, lower=False, unit_diagonal=False)
    return astype(reshape(x, dims_of(b)), element_of(b))


def inverse(a: ir.Value) -> ir.Value:
    """The inverses of matrices [..., n, n]. Source: LAPACK `getri`; ATen `linalg_inv`."""
    if rank_of(a) < 2:
        raise ShapeError(f"expects matrices, but got rank {rank_of(a)}")
    *lead, n, _ = dims_of(a)
    eye = emit(graph.EyeOp, shape=[n, n], k=0, dtype=element_of(a))
    return solve(a, broadcast_to(eye, [*lead, n, n]))


def _eliminated(a: ir.Value) -> tuple[ir.Value, ir.Value]:
    """Matrices [b, n, m] with a triangle in their first n columns, and the signs of the swaps.

    What is below the triangle is not 0. A pivot is the greatest element of its column that is left;
    where it is 0, all are, and nothing is added.
    """
    rows = row_indices(a)

    def body(turn: Round, a: ir.Value, sign: ir.Value) -> Sequence[ir.Value]:
        at = turn.position
        is_below = greater(rows, at)
        is_left = binary(graph.GreaterEqualOp, rows, at)
        sizes = where(is_left, emit(graph.AbsOp, turn.take(a, 2)), -1)
        best = emit(graph.ArgmaxOp, sizes, axis=1, keepdims=True)
        order = where(binary(graph.EqualOp, rows, best), at, rows)
        order = where(binary(graph.EqualOp, rows, at), best, order)
        swapped = emit(graph.GatherNdOp, a, expand_dims(order, [2]), batch_dims=1)
        pivots = turn.take(swapped, 1)
        pivot = expand_dims(turn.take(pivots, 1), [1])
        factors = divide(turn.take(swapped, 2), pivot)
        factors = where(binary(graph.EqualOp, pivot, 0), 0, factors)
        taken = multiply(expand_dims(factors, [2]), expand_dims(pivots, [1]))
        reduced = where(expand_dims(is_below, [2]), subtract(swapped, taken), swapped)
        same = emit(graph.SqueezeOp, binary(graph.EqualOp, best, at), axes=[1])
        return [reduced, where(same, sign, emit(graph.NegativeOp, sign))]

    ones = broadcast_to(scalar(1, element_of(a)), [dims_of(a)[0]])
    reduced, sign = each_index(a, 1, [a, ones], body)
    return reduced, sign
