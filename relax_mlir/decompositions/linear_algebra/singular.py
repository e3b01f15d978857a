"""Singular values, by Jacobi's rotations of columns: svd, svdvals, pinv."""

from collections.abc import Sequence

from relax_mlir.bindings import ir
from relax_mlir.dialects import graph
from relax_mlir.symbolic import Expr
from relax_mlir.symbolic import maximum as greater_of

from ..emit import (
    add,
    astype,
    concat,
    dims_of,
    divide,
    element_of,
    emit,
    expand_dims,
    greater,
    less,
    maximum,
    multiply,
    permute,
    rank_of,
    reduce,
    reshape,
    scalar,
    symbol,
    where,
    widen,
    with_dims,
)
from .batches import (
    diagonals,
    first,
    identities,
    matrices,
    shorter,
    sorted_rows,
    transposed,
    unbatched,
    zeros,
)
from .jacobi import EPSILON, Pairs, scale_of, sweeps
from .orthogonal import columns_of_q, reflected
from .symmetric import eigh


def svd(a: ir.Value, *, full_matrices: bool = False) -> tuple[ir.Value, ir.Value, ir.Value]:
    """U [..., m, k], singular values [..., k] and V^T [..., k, n] of matrices [..., m, n].

    k = min(m, n); with `full_matrices` U is [..., m, m] and V^T [..., n, n]. Values descend and
    are not negative; columns of U and rows of V^T are orthonormal, up to one sign for both. Where a
    is not finite, results are not either. Source: LAPACK `gesvj`; NumPy `svd`; ATen `linalg_svd`.
    """
    batch = matrices(a)
    if not _is_tall(batch):
        v, values, u = _svd(transposed(batch), full_matrices)
        return unbatched(transposed(u), a), unbatched(values, a), unbatched(transposed(v), a)
    u, values, v = _svd(batch, full_matrices)
    return unbatched(u, a), unbatched(values, a), unbatched(v, a)


def svdvals(a: ir.Value) -> ir.Value:
    """Singular values [..., min(m, n)] of matrices [..., m, n], descending; see `svd`."""
    batch = matrices(a)
    columns = transposed(batch) if _is_tall(batch) else batch
    values, _ = _rotated(columns)
    return unbatched(first(values, 1, shorter(batch)), a)


def _is_tall(batch: ir.Value) -> bool:
    """False for matrices that are known to have more columns than rows."""
    _, m, n = dims_of(batch)
    return m.value is None or n.value is None or m.value >= n.value


def _svd(a: ir.Value, full: bool) -> tuple[ir.Value, ir.Value, ir.Value]:
    """The same of matrices [b, m, n], by rotations of their columns.

    Columns that are orthogonal are Q times a diagonal: reflectors give those that are missing
    where singular values are 0, or for the whole U.
    """
    _, m, n = dims_of(a)
    values, columns, v = _rotated(transposed(a), identities(dims_of(a)[0], n, n, element_of(a)))
    packed, taus = reflected(transposed(columns))
    u = columns_of_q(packed, taus, full)
    is_negative = less(diagonals(packed), 0)
    if full:
        is_negative = _padded(is_negative, m)
    u = where(expand_dims(is_negative, [1]), emit(graph.NegativeOp, u), u)
    k = shorter(a)
    return u, first(values, 1, k), v if full else first(v, 1, k)


def _padded(flags: ir.Value, m: Expr) -> ir.Value:
    """Flags [b, m] that are false beyond those [b, k] that are given."""
    b, k = dims_of(flags)
    more = zeros([b, m - k], element_of(flags))
    return with_dims(concat([flags, more], axis=1), [b, m])


def _rotated(w: ir.Value, *v: ir.Value) -> list[ir.Value]:
    """Singular values [b, n] of matrices [b, n, m], and their rows, rotated to be orthogonal.

    And what the same rotations make of rows of others. Rows descend by their lengths; those that
    are shorter than rounding makes them need not be orthogonal.
    """
    m, element, scale = dims_of(w)[2], element_of(w), scale_of(w)
    epsilon = EPSILON[str(element)]
    w = divide(w, scale)
    total = emit(graph.SqrtOp, reduce(graph.SumOp, multiply(w, w), [1, 2]))
    least = expand_dims(multiply(total, epsilon), [1])
    length = emit(graph.SqrtOp, maximum(reshape(symbol(m, element), []), 1))
    tolerance = multiply(length, 2 * epsilon)  # as sums of so many products are rounded

    def turn(pairs: Pairs, w: ir.Value, *v: ir.Value) -> tuple[ir.Value, Sequence[ir.Value]]:
        squares = reduce(graph.SumOp, multiply(w, w), [2])
        products = reduce(graph.SumOp, multiply(w, pairs.other(w, 1)), [2])
        products = multiply(add(products, pairs.other(products, 1)), 0.5)
        norms = maximum(emit(graph.SqrtOp, squares), least)
        limit = multiply(multiply(norms, pairs.other(norms, 1)), tolerance)
        left = emit(graph.LogicalAndOp, greater(emit(graph.AbsOp, products), limit), pairs.is_pair)
        rotation = pairs.rotations(squares, products)
        return left, [pairs.rotated(x, rotation) for x in (w, *v)]

    rows = sweeps(dims_of(w)[1], [w, *v], turn)
    squares = reduce(graph.SumOp, multiply(rows[0], rows[0]), [2])
    sort = graph.SortOp.build(emit(graph.SqrtOp, squares), axis=1, descending=True)
    values, order = sort.operation.results
    values = multiply(values, emit(graph.SqueezeOp, scale, axes=[2]))
    return [values, *(sorted_rows(each, order) for each in rows)]


def pinv(
    a: ir.Value,
    *,
    atol: ir.Value | None = None,
    rtol: ir.Value | None = None,
    hermitian: bool = False,
) -> ir.Value:
    """The pseudoinverses [..., n, m] of matrices [..., m, n].

    Singular values up to the greater one of `atol` and `rtol` times the greatest one count as 0;
    both are tensors that broadcast to the dims in front. Without `rtol` it is 0 where there is an
    `atol` above 0, else max(m, n) times the distance from 1 to the next float. `hermitian` matrices
    are symmetric: their lower triangle is read. Source: NumPy `pinv`; ATen `linalg_pinv`.
    """
    if hermitian:
        values, vectors = eigh(a)
        left, right = vectors, _swapped(vectors)
    else:
        u, values, vt = svd(a)
        left, right = _swapped(vt), _swapped(u)
    size = emit(graph.AbsOp, values)
    most = maximum(reduce(graph.MaxOp, size, [rank_of(size) - 1], keepdims=True), 0)
    absolute = scalar(0, element_of(a)) if atol is None else astype(atol, element_of(a))
    relative = _usual_rtol(a, absolute) if rtol is None else astype(rtol, element_of(a))
    least = maximum(multiply(most, _last(relative)), _last(absolute))
    inverse = where(greater(size, least), divide(1, values), 0)
    left = multiply(left, expand_dims(inverse, [rank_of(inverse) - 1]))
    return emit(graph.MatmulOp, left, right)


def _usual_rtol(a: ir.Value, atol: ir.Value) -> ir.Value:
    *_, m, n = dims_of(a)
    length = reshape(symbol(greater_of(m, n), element_of(a)), [])
    epsilon = EPSILON[str(element_of(widen(a)))]
    return where(greater(atol, 0), 0, multiply(length, epsilon))


def _swapped(x: ir.Value) -> ir.Value:
    """The last two axes exchanged."""
    rank = rank_of(x)
    return permute(x, [*range(rank - 2), rank - 1, rank - 2])


def _last(x: ir.Value) -> ir.Value:
    """A tensor that broadcasts along a new last axis."""
    return expand_dims(x, [rank_of(x)])
