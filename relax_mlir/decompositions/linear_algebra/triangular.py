"""Triangular matrices: triangular_solve, cholesky. A loop over rows, a product for each."""

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
    reshape,
    scalar,
    subtract,
    where,
    with_dims,
)
from ..loops import Round, each_index
from .batches import (
    diagonals,
    first_true,
    matrices,
    require_one_batch,
    row_indices,
    square_matrices,
    transposed,
    unbatched,
)


def triangular_solve(
    a: ir.Value,
    b: ir.Value,
    *,
    left: bool = True,
    lower: bool = True,
    transpose: bool = False,
    unit_diagonal: bool = False,
) -> ir.Value:
    """x with a x = b, or x a = b, for triangular matrices a [..., n, n] and b [..., n, k].

    With `transpose` a is transposed first; the other triangle is not read, nor is a diagonal that
    is 1. Source: StableHLO `triangular_solve`; BLAS `trsm`.
    """
    square, right = square_matrices(a), matrices(b)
    require_one_batch(a, b)
    if transpose != (not left):
        square, lower = transposed(square), not lower
    batch, n, _ = dims_of(square)
    right = right if left else transposed(right)
    if dims_differ(n, dims_of(right)[1]):
        raise ShapeError(f"expects {n} equations, but got {dims_of(right)[1]}")
    right = with_dims(right, [batch, n, dims_of(right)[2]])
    x = solve_triangles(square, right, lower, unit_diagonal)
    return astype(reshape(x if left else transposed(x), dims_of(b)), element_of(b))


def cholesky_ex(a: ir.Value, *, lower: bool = True) -> tuple[ir.Value, ir.Value]:
    """What `cholesky` gives, and [...] as i32: 0, or the first minor that is not positive, from 1.

    Source: LAPACK `potrf`, `info`; ATen `linalg_cholesky_ex`.
    """
    factor = cholesky(a, lower=lower)
    is_positive = greater(diagonals(matrices(factor)), 0)
    return factor, unbatched(first_true(emit(graph.LogicalNotOp, is_positive)), a)


def solve_triangles(a: ir.Value, b: ir.Value, lower: bool, unit_diagonal: bool) -> ir.Value:
    """x with a x = b, row by row: those that are not known yet are 0, as is what is not read."""
    others = emit(graph.TrilOp, a, k=-1) if lower else emit(graph.TriuOp, a, k=1)

    def body(turn: Round, x: ir.Value) -> Sequence[ir.Value]:
        known = emit(graph.MatmulOp, expand_dims(turn.take(others, 1), [1]), x)
        row = subtract(turn.take(b, 1), emit(graph.SqueezeOp, known, axes=[1]))
        if not unit_diagonal:
            diagonal = turn.take(turn.take(a, 1), 1)
            row = divide(row, expand_dims(diagonal, [1]))
        return [turn.put(x, row, 1)]

    start = broadcast_to(scalar(0, element_of(b)), dims_of(b))
    return each_index(a, 1, [start], body, backwards=not lower)[0]


def cholesky(a: ir.Value, *, lower: bool = True) -> ir.Value:
    """The triangle L with L L^T = a, or U with U^T U = a, of symmetric matrices [..., n, n].

    Only that triangle of a is read; the other one of the result is 0. A matrix that is not positive
    definite leaves NaN. Source: StableHLO `cholesky`; LAPACK `potrf`.
    """
    square = square_matrices(a)
    upper = transposed(square) if lower else square
    rows = row_indices(upper)

    def body(turn: Round, u: ir.Value) -> Sequence[ir.Value]:
        column = expand_dims(turn.take(u, 2), [1])
        known = emit(graph.SqueezeOp, emit(graph.MatmulOp, column, u), axes=[1])
        rest = subtract(turn.take(upper, 1), known)
        root = expand_dims(emit(graph.SqrtOp, turn.take(rest, 1)), [1])
        row = where(greater(rows, turn.position), divide(rest, root), 0)
        row = where(binary(graph.EqualOp, rows, turn.position), root, row)
        return [turn.put(u, row, 1)]

    start = broadcast_to(scalar(0, element_of(upper)), dims_of(upper))
    (u,) = each_index(upper, 1, [start], body)
    return astype(reshape(transposed(u) if lower else u, dims_of(a)), element_of(a))
