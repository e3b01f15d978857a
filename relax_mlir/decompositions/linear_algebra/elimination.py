"""Gaussian elimination with partial pivoting: factors L and U, det, solve, inverse."""

from collections.abc import Sequence

from relax_mlir.bindings import ir
from relax_mlir.dialects import graph
from relax_mlir.dialects.graph import ShapeError, dims_differ

from ..emit import (
    astype,
    binary,
    broadcast_to,
    concat,
    dims_of,
    divide,
    element_of,
    emit,
    expand_dims,
    greater,
    multiply,
    rank_of,
    reduce,
    scalar,
    subtract,
    where,
    with_dims,
)
from ..loops import Round, each_index
from .batches import (
    diagonals,
    eye,
    first,
    first_true,
    indices,
    matrices,
    require_one_batch,
    row_indices,
    shorter,
    sorted_rows,
    square_matrices,
    transposed,
    unbatched,
    vectors,
    zeros,
)
from .triangular import solve_triangles


def det(a: ir.Value) -> ir.Value:
    """The determinants of matrices [..., n, n]; 1 of no rows. Source: ONNX `Det`; ATen `det`."""
    sign, diagonal = _signed_diagonals(a)
    return unbatched(multiply(sign, reduce(graph.ProdOp, diagonal, [1])), a)


def slogdet(a: ir.Value) -> tuple[ir.Value, ir.Value]:
    """The signs of the determinants of matrices [..., n, n], and logarithms of their sizes.

    Of a singular matrix 0 and -inf. Source: NumPy `slogdet`; ATen `linalg_slogdet`.
    """
    sign, diagonal = _signed_diagonals(a)
    signs = reduce(graph.ProdOp, emit(graph.SignOp, diagonal), [1])
    size = reduce(graph.SumOp, emit(graph.LogOp, emit(graph.AbsOp, diagonal)), [1])
    return unbatched(multiply(sign, signs), a), unbatched(size, a)


def _signed_diagonals(a: ir.Value) -> tuple[ir.Value, ir.Value]:
    """The signs [b] of the exchanges of rows, and the diagonals [b, n] of U."""
    packed, pivots = _eliminated(square_matrices(a))
    moves = binary(graph.NotEqualOp, pivots, indices(pivots, 1))
    signs = where(moves, scalar(-1, element_of(packed)), 1)
    return reduce(graph.ProdOp, signs, [1]), diagonals(packed)


def lu_factor(a: ir.Value) -> tuple[ir.Value, ir.Value]:
    """Factors of matrices [..., m, n]: U, with L below its diagonal, and pivots [..., k].

    k = min(m, n); pivot i is the row, from 0, that row i was exchanged with when it came to be
    eliminated. Where a matrix is singular, U has a 0 on its diagonal. Source: LAPACK `getrf`.
    """
    packed, pivots = _eliminated(matrices(a))
    return unbatched(packed, a), unbatched(pivots, a)


def lu_factor_ex(a: ir.Value) -> tuple[ir.Value, ir.Value, ir.Value]:
    """What `lu_factor` gives, and [...] as i32: 0, or the first pivot that is 0, from 1."""
    packed, pivots = lu_factor(a)
    info = first_true(binary(graph.EqualOp, diagonals(matrices(packed)), 0))
    return packed, pivots, unbatched(info, a)


def lu_unpack(packed: ir.Value, pivots: ir.Value) -> tuple[ir.Value, ir.Value, ir.Value]:
    """P [..., m, m], L [..., m, k] and U [..., k, n] with P L U = a, of what `lu_factor` gives.

    Source: ATen `lu_unpack`; SciPy `lu`.
    """
    batch = matrices(packed)
    _, m, n = dims_of(batch)
    k, element = shorter(batch), element_of(batch)
    is_diagonal = eye(m, n, ir.IntegerType.get_signless(1))
    lower = where(is_diagonal, 1, emit(graph.TrilOp, batch, k=-1))
    upper = first(emit(graph.TriuOp, batch, k=0), 1, k)
    order = lu_order(batch, vectors(pivots, packed, k, "pivots"))
    rows = expand_dims(row_indices(batch), [2])
    exchanges = astype(binary(graph.EqualOp, rows, expand_dims(order, [1])), element)
    lower = first(lower, 2, k)
    return unbatched(exchanges, packed), unbatched(lower, packed), unbatched(upper, packed)


def lu_order(batch: ir.Value, pivots: ir.Value) -> ir.Value:
    """tensor<b, m>: the rows of a in the order in which L U has them."""
    b, m, _ = dims_of(batch)
    rows = row_indices(batch)

    def body(turn: Round, order: ir.Value) -> Sequence[ir.Value]:
        best = expand_dims(turn.take(pivots, 1), [1])
        exchanged = _exchanged(rows, turn.position, best)
        return [emit(graph.GatherElementsOp, order, exchanged, axis=1)]

    return each_index(pivots, 1, [broadcast_to(rows, [b, m])], body)[0]


def lu_solve(
    packed: ir.Value, pivots: ir.Value, b: ir.Value, *, transpose: bool = False
) -> ir.Value:
    """x with a x = b, or a^T x = b, by the factors of matrices a [..., n, n]; b is [..., n, k].

    Source: LAPACK `getrs`; ATen `linalg_lu_solve`.
    """
    require_one_batch(packed, b)
    batch, right = square_matrices(packed), _equations(packed, b)
    n = dims_of(batch)[1]
    order = lu_order(batch, vectors(pivots, packed, n, "pivots"))
    if transpose:
        upper = transposed(batch)
        right = solve_triangles(upper, right, lower=True, unit_diagonal=False)
        right = solve_triangles(upper, right, lower=False, unit_diagonal=True)
        inverse = graph.SortOp.build(order, axis=1, descending=False).operation.results[1]
        return unbatched(sorted_rows(right, inverse), b)
    right = sorted_rows(right, order)
    right = solve_triangles(batch, right, lower=True, unit_diagonal=True)
    return unbatched(solve_triangles(batch, right, lower=False, unit_diagonal=False), b)


def _equations(a: ir.Value, b: ir.Value) -> ir.Value:
    """The right sides [b, n, k] of as many equations as matrices [..., n, n] have rows."""
    batch, n, _ = dims_of(square_matrices(a))
    right = matrices(b)
    if dims_differ(n, dims_of(right)[1]):
        raise ShapeError(f"expects {n} equations, but got {dims_of(right)[1]}")
    return with_dims(right, [batch, n, dims_of(right)[2]])


def solve(a: ir.Value, b: ir.Value) -> ir.Value:
    """x with a x = b, for matrices a [..., n, n] and b [..., n, k].

    Where a is singular, x is not finite. Source: LAPACK `gesv`; ATen `linalg_solve`.
    """
    return _solved(a, b)[0]


def solve_ex(a: ir.Value, b: ir.Value) -> tuple[ir.Value, ir.Value]:
    """What `solve` gives, and [...] as i32: 0, or the first pivot that is 0, from 1.

    Source: LAPACK `gesv`, `info`; ATen `linalg_solve_ex`.
    """
    x, upper = _solved(a, b)
    return x, unbatched(first_true(binary(graph.EqualOp, diagonals(upper), 0)), b)


def inverse(a: ir.Value) -> ir.Value:
    """The inverses of matrices [..., n, n]. Source: LAPACK `getri`; ATen `linalg_inv`."""
    return solve(a, _identity_like(a))


def inverse_ex(a: ir.Value) -> tuple[ir.Value, ir.Value]:
    """What `inverse` gives, and what `solve_ex` says of it. Source: ATen `linalg_inv_ex`."""
    return solve_ex(a, _identity_like(a))


def _identity_like(a: ir.Value) -> ir.Value:
    if rank_of(a) < 2:
        raise ShapeError(f"expects matrices, but got rank {rank_of(a)}")
    *lead, n, _ = dims_of(a)
    return broadcast_to(eye(n, n, element_of(a)), [*lead, n, n])


def _solved(a: ir.Value, b: ir.Value) -> tuple[ir.Value, ir.Value]:
    """x with a x = b, and U [b, n, n]: columns of b are eliminated along with those of a."""
    require_one_batch(a, b)
    square, right = square_matrices(a), _equations(a, b)
    n, k = dims_of(right)[1:]
    reduced, _ = _eliminated(concat([square, right], axis=2))
    upper, right = graph.SplitOp.build(reduced, sizes=[n, k], axis=2).operation.results
    return unbatched(solve_triangles(upper, right, lower=False, unit_diagonal=False), b), upper


def _eliminated(a: ir.Value) -> tuple[ir.Value, ir.Value]:
    """Factors of matrices [b, m, n], L below the diagonal of U, and pivots [b, min(m, n)].

    A pivot is the greatest element of its column that is left; where it is 0, all are, and so are
    the factors.
    """
    rows, columns = row_indices(a), indices(a, 2)

    def body(turn: Round, a: ir.Value, pivots: ir.Value) -> Sequence[ir.Value]:
        at = turn.position
        is_left = binary(graph.GreaterEqualOp, rows, at)
        sizes = where(is_left, emit(graph.AbsOp, turn.take(a, 2)), -1)
        best = emit(graph.ArgmaxOp, sizes, axis=1, keepdims=True)
        a = sorted_rows(a, _exchanged(rows, at, best))
        row, column = turn.take(a, 1), turn.take(a, 2)
        pivot = expand_dims(turn.take(row, 1), [1])
        factors = where(binary(graph.EqualOp, pivot, 0), 0, divide(column, pivot))
        factors = expand_dims(factors, [2])
        rest = subtract(a, multiply(factors, expand_dims(row, [1])))
        below = where(greater(columns, at), rest, a)
        below = where(binary(graph.EqualOp, columns, at), factors, below)
        a = where(expand_dims(greater(rows, at), [2]), below, a)
        return [a, turn.put(pivots, emit(graph.SqueezeOp, best, axes=[1]), 1)]

    start = zeros([dims_of(a)[0], shorter(a)], ir.IntegerType.get_signless(64))
    packed, pivots = each_index(start, 1, [a, start], body)
    return packed, pivots


def _exchanged(rows: ir.Value, at: ir.Value, best: ir.Value) -> ir.Value:
    """tensor<b, m>: the indices of rows with row `at` and the row `best` exchanged."""
    order = where(binary(graph.EqualOp, rows, best), at, rows)
    return where(binary(graph.EqualOp, rows, at), best, order)
