"""The exponential of matrices."""

import math
from collections.abc import Sequence

from relax_mlir.bindings import ir
from relax_mlir.dialects import graph

from ..emit import (
    add,
    binary,
    dims_of,
    element_of,
    emit,
    less,
    maximum,
    minimum,
    multiply,
    reduce,
    scalar,
    where,
)
from ..loops import truth_of, while_loop
from .batches import identities, square_matrices, unbatched

TERMS = 20
"""Of the series: what is left of it, below 1/20!, is less than rounding in f64."""
STEP = 4
HALVINGS = 1100.0
"""At most: more than a finite matrix takes."""


def matrix_exp(a: ir.Value) -> ir.Value:
    """The exponential of matrices [..., n, n], by the power series of a / 2^s, squared s times.

    s is what it takes for the greatest sum of a column's sizes not to be above 1. Source: Moler and
    Van Loan, Nineteen dubious ways, SIAM Review 45, 2003; ATen `linalg_matrix_exp`.
    """
    batch = square_matrices(a)
    norm = reduce(graph.SumOp, emit(graph.AbsOp, batch), [1], keepdims=True)
    norm = maximum(reduce(graph.MaxOp, norm, [2], keepdims=True), 0)
    halvings = emit(graph.CeilOp, emit(graph.Log2Op, maximum(norm, 1)))
    halvings = where(emit(graph.IsfiniteOp, norm), minimum(halvings, HALVINGS), 0)
    factor = binary(graph.PowerOp, 0.5, halvings)
    squared = _squared(_series(multiply(batch, factor)), halvings)
    return unbatched(squared, a)


def _series(x: ir.Value) -> ir.Value:
    """The power series, by groups of terms: Horner's scheme in x^STEP."""
    b, n, _ = dims_of(x)
    powers = [identities(b, n, n, element_of(x)), x]
    while len(powers) <= STEP:
        powers.append(emit(graph.MatmulOp, powers[-1], x))
    total = None
    for start in reversed(range(0, TERMS, STEP)):
        group = scalar(0, element_of(x))
        for index in range(STEP):
            group = add(group, multiply(powers[index], 1 / math.factorial(start + index)))
        total = group if total is None else add(emit(graph.MatmulOp, total, powers[STEP]), group)
    assert total is not None
    return total


def _squared(x: ir.Value, times: ir.Value) -> ir.Value:
    """Each matrix squared as often as tensor<b, 1, 1> says."""

    def more(at: ir.Value, x: ir.Value) -> ir.Value:
        return truth_of(reduce(graph.AnyOp, less(at, times), [0, 1, 2]))

    def turn(at: ir.Value, x: ir.Value) -> Sequence[ir.Value]:
        return [add(at, 1), where(less(at, times), emit(graph.MatmulOp, x, x), x)]

    return while_loop([scalar(0, element_of(x)), x], more, turn)[1]
