"""Eigenvalues of symmetric matrices, by Jacobi's rotations: eigh, eigvalsh."""

from collections.abc import Sequence

from relax_mlir.bindings import ir
from relax_mlir.dialects import graph

from ..emit import (
    add,
    binary,
    dims_of,
    divide,
    element_of,
    emit,
    expand_dims,
    greater,
    multiply,
    reduce,
    where,
)
from .batches import (
    diagonals,
    identities,
    row_indices,
    sorted_rows,
    square_matrices,
    transposed,
    unbatched,
)
from .jacobi import EPSILON, Pairs, scale_of, sweeps


def eigh(a: ir.Value, *, lower: bool = True) -> tuple[ir.Value, ir.Value]:
    """Eigenvalues [..., n] of symmetric matrices [..., n, n], and orthonormal eigenvectors.

    Eigenvalues ascend; column j of [..., n, n] belongs to eigenvalue j, up to its sign. One
    triangle of a is read. Where it is not finite, results are not either. Source: LAPACK `syevj`
    of cuSOLVER; ATen `linalg_eigh`.
    """
    values, rows = _eigen(square_matrices(a), lower, vectors=True)
    return unbatched(values, a), unbatched(transposed(rows[0]), a)


def eigvalsh(a: ir.Value, *, lower: bool = True) -> ir.Value:
    """Eigenvalues [..., n] of symmetric matrices [..., n, n], ascending; see `eigh`."""
    return unbatched(_eigen(square_matrices(a), lower, vectors=False)[0], a)


def _eigen(a: ir.Value, lower: bool, vectors: bool) -> tuple[ir.Value, list[ir.Value]]:
    """Eigenvalues [b, n] of matrices [b, n, n], and on demand eigenvectors, which are rows."""
    b, n, _ = dims_of(a)
    scale = scale_of(_symmetric(a, lower))
    scaled = divide(_symmetric(a, lower), scale)
    columns = expand_dims(row_indices(a), [1])
    is_other = binary(graph.NotEqualOp, columns, expand_dims(row_indices(a), [2]))
    least = EPSILON[str(element_of(a))] / 4

    def turn(pairs: Pairs, a: ir.Value, *rows: ir.Value) -> tuple[ir.Value, Sequence[ir.Value]]:
        is_pair = binary(graph.EqualOp, columns, expand_dims(pairs.partner, [0, 2]))
        products = reduce(graph.SumOp, where(is_pair, a, 0), [2])
        products = multiply(add(products, pairs.other(products, 1)), 0.5)
        left = greater(emit(graph.AbsOp, products), least)
        rotation = pairs.rotations(diagonals(a), products)
        a = pairs.rotated(pairs.rotated(a, rotation), rotation, axis=2)
        a = where(emit(graph.LogicalAndOp, is_pair, is_other), 0, a)
        return emit(graph.LogicalAndOp, left, pairs.is_pair), [
            a,
            *(pairs.rotated(x, rotation) for x in rows),
        ]

    start = [identities(b, n, n, element_of(a))] if vectors else []
    reduced, *rows = sweeps(n, [scaled, *start], turn)
    sort = graph.SortOp.build(diagonals(reduced), axis=1, descending=False)
    values, order = sort.operation.results
    values = multiply(values, emit(graph.SqueezeOp, scale, axes=[2]))
    return values, [sorted_rows(each, order) for each in rows]


def _symmetric(a: ir.Value, lower: bool) -> ir.Value:
    """Matrices whose other triangle is the mirror of the one that is read."""
    half, k = (graph.TrilOp, -1) if lower else (graph.TriuOp, 1)
    return add(emit(half, a, k=0), transposed(emit(half, a, k=k)))
