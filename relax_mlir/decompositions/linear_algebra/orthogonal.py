"""Householder reflections: geqrf, ormqr, householder_product, qr.

A reflector is 1 - tau v v^T; v begins with a 1, which is not stored, at the diagonal.
"""

from collections.abc import Sequence

from relax_mlir.bindings import ir
from relax_mlir.dialects import graph
from relax_mlir.dialects.graph import ShapeError, dims_differ

from ..emit import (
    binary,
    dims_of,
    divide,
    element_of,
    emit,
    expand_dims,
    greater,
    maximum,
    multiply,
    reduce,
    scalar,
    subtract,
    where,
)
from ..loops import Round, each_index
from .batches import (
    first,
    identities,
    indices,
    matrices,
    require_one_batch,
    row_indices,
    shorter,
    transposed,
    unbatched,
    vectors,
    zeros,
)


def geqrf(a: ir.Value) -> tuple[ir.Value, ir.Value]:
    """R of matrices [..., m, n], with reflectors below its diagonal, and their tau [..., k].

    k = min(m, n). Source: LAPACK `geqrf`; ATen `geqrf`.
    """
    packed, taus = reflected(matrices(a))
    return unbatched(packed, a), unbatched(taus, a)


def qr(a: ir.Value, *, complete: bool = False) -> tuple[ir.Value, ir.Value]:
    """Q [..., m, k] and R [..., k, n] with Q R = a; k = min(m, n), or m if `complete`.

    Columns of Q are orthonormal; signs are those of LAPACK. Source: NumPy `qr`; ATen `linalg_qr`.
    """
    packed, taus = reflected(matrices(a))
    q = columns_of_q(packed, taus, complete)
    upper = emit(graph.TriuOp, packed, k=0)
    return unbatched(q, a), unbatched(first(upper, 1, dims_of(q)[2]), a)


def householder_product(packed: ir.Value, taus: ir.Value) -> ir.Value:
    """The first n columns [..., m, n] of the product of reflectors; taus are [..., k], k <= n.

    Source: LAPACK `orgqr`; ATen `linalg_householder_product`.
    """
    batch = matrices(packed)
    b, m, n = dims_of(batch)
    start = identities(b, m, n, element_of(batch))
    return unbatched(product_with(batch, _taus(packed, taus), start), packed)


def ormqr(
    packed: ir.Value,
    taus: ir.Value,
    c: ir.Value,
    *,
    left: bool = True,
    transpose: bool = False,
) -> ir.Value:
    """Q c or c Q, or of Q transposed, for the whole Q [..., m, m] of reflectors [..., m, k].

    Source: LAPACK `ormqr`; ATen `ormqr`.
    """
    require_one_batch(packed, c)
    batch, other = matrices(packed), matrices(c)
    other = other if left else transposed(other)
    if dims_differ(dims_of(batch)[1], dims_of(other)[1]):
        raise ShapeError(f"multiplies Q of {dims_of(batch)[1]} rows with {dims_of(other)[1]}")
    result = product_with(batch, _taus(packed, taus), other, transpose=transpose == left)
    return unbatched(result if left else transposed(result), c)


def _taus(packed: ir.Value, taus: ir.Value) -> ir.Value:
    """tensor<b, k>, at most one for each column."""
    own = dims_of(taus)
    columns = dims_of(packed)[-1]
    count = own[-1] if own else columns
    if count.value is not None and columns.value is not None and count.value > columns.value:
        raise ShapeError(f"has {count} taus for {columns} reflectors")
    return vectors(taus, packed, count, "taus")


def columns_of_q(packed: ir.Value, taus: ir.Value, complete: bool) -> ir.Value:
    """tensor<b, m, min(m, n)>, orthonormal columns, or tensor<b, m, m>, all of them."""
    b, m, _ = dims_of(packed)
    count = m if complete else shorter(packed)
    return product_with(packed, taus, identities(b, m, count, element_of(packed)))


def reflected(a: ir.Value) -> tuple[ir.Value, ir.Value]:
    """R of matrices [b, m, n] with reflectors below its diagonal, and tau [b, min(m, n)]."""
    rows, columns = row_indices(a), indices(a, 2)

    def body(turn: Round, a: ir.Value, taus: ir.Value) -> Sequence[ir.Value]:
        at = turn.position
        column = turn.take(a, 2)
        is_below, is_here = greater(rows, at), binary(graph.EqualOp, rows, at)
        beta, tau, tail = _reflector(turn.take(column, 1), where(is_below, column, 0))
        own = where(is_below, tail, where(is_here, expand_dims(beta, [1]), column))
        rest = _reflect(where(is_here, 1, tail), tau, a)
        a = where(greater(columns, at), rest, a)
        a = where(binary(graph.EqualOp, columns, at), expand_dims(own, [2]), a)
        return [a, turn.put(taus, tau, 1)]

    start = zeros([dims_of(a)[0], shorter(a)], element_of(a))
    packed, taus = each_index(start, 1, [a, start], body)
    return packed, taus


def _reflector(head: ir.Value, tail: ir.Value) -> tuple[ir.Value, ir.Value, ir.Value]:
    """What [b] is to become of heads [b], tau [b], and v [b, m], to make tails [b, m] 0."""
    most = reduce(graph.MaxOp, emit(graph.AbsOp, tail), [1])
    size = maximum(most, emit(graph.AbsOp, head))
    is_done = binary(graph.EqualOp, most, 0)
    scale = where(binary(graph.EqualOp, size, 0), 1, size)  # squares neither overflow nor vanish
    head, tail = divide(head, scale), divide(tail, expand_dims(scale, [1]))
    squares = where(is_done, 1, reduce(graph.SumOp, multiply(tail, tail), [1]))
    norm = emit(graph.HypotOp, head, emit(graph.SqrtOp, squares))
    beta = emit(graph.NegativeOp, emit(graph.CopysignOp, norm, head))
    gap = where(is_done, 1, subtract(head, beta))
    tau = where(is_done, 0, divide(subtract(beta, head), beta))
    after = multiply(where(is_done, head, beta), scale)
    return after, tau, divide(tail, expand_dims(gap, [1]))


def _reflect(v: ir.Value, tau: ir.Value, c: ir.Value) -> ir.Value:
    """(1 - tau v v^T) c, for v [b, m], tau [b] and c [b, m, n]."""
    known = emit(graph.MatmulOp, expand_dims(v, [1]), c)
    scaled = multiply(v, expand_dims(tau, [1]))
    return subtract(c, multiply(expand_dims(scaled, [2]), known))


def product_with(
    packed: ir.Value, taus: ir.Value, c: ir.Value, transpose: bool = False
) -> ir.Value:
    """Q c, or Q^T c, for c [b, m, n] and the reflectors of `packed` that have a tau."""
    rows = row_indices(packed)

    def body(turn: Round, c: ir.Value) -> Sequence[ir.Value]:
        at = turn.position
        one = scalar(1, element_of(packed))
        v = where(
            greater(rows, at), turn.take(packed, 2), where(binary(graph.EqualOp, rows, at), one, 0)
        )
        return [_reflect(v, turn.take(taus, 1), c)]

    return each_index(taus, 1, [c], body, backwards=not transpose)[0]
