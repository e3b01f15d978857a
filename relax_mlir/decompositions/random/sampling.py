"""Samples of classes by their probabilities: multinomial, multinomial_from_uniform.

A class is the first one whose probability and those in front of it sum to more than a random share
of the sum of all, so that one of probability 0 is never chosen.
"""

from relax_mlir.bindings import ir
from relax_mlir.dialects import graph
from relax_mlir.dialects.graph import Dim, ShapeError, dims_differ
from relax_mlir.symbolic import const

from ..emit import (
    astype,
    dims_of,
    element_of,
    emit,
    is_integer,
    minimum,
    multiply,
    rank_of,
    subtract,
    symbol,
    widen,
)
from .distributions import random_uniform
from .philox import i64


def multinomial(
    state: ir.Value, logits: ir.Value, samples: Dim | int | str, element: ir.Type | None = None
) -> tuple[ir.Value, ir.Value]:
    """Classes by logarithms of their probabilities, tensor<n, classes>, and the next state.

    So many samples for each row, with replacement, as i64 or `element`. Logarithms may all be off
    by a constant. Source: ONNX `Multinomial`; ATen `multinomial`, of probabilities.
    """
    if rank_of(logits) != 2 or is_integer(element_of(logits)):
        raise ShapeError(f"expects floats of rank 2, but got '{graph.TensorType.of(logits)}'")
    widened = widen(logits)
    sums = _sums(emit(graph.SoftmaxOp, widened, axis=1))
    drawn, after = random_uniform(state, [dims_of(logits)[0], samples], element_of(widened))
    return astype(_chosen(sums, drawn), element or i64()), after


def multinomial_from_uniform(
    probabilities: ir.Value,
    drawn: ir.Value,
    rows: ir.Value,
    element: ir.Type | None = None,
) -> ir.Value:
    """Classes by probabilities, tensor<n, classes>, and elements that were drawn from 0 to 1.

    `drawn` and `rows` are tensor<m, 1>: an element and the row that it is for. Source: TVM
    `relax.multinomial_from_uniform`.
    """
    if rank_of(probabilities) != 2 or rank_of(drawn) != 2 or rank_of(rows) != 2:
        ranks = ", ".join(str(rank_of(value)) for value in (probabilities, drawn, rows))
        raise ShapeError(f"expects three tensors of rank 2, but got ranks {ranks}")
    for value in (drawn, rows):
        if dims_differ(dims_of(value)[1], const(1)):
            raise ShapeError(f"expects a column, but got dim {dims_of(value)[1]}")
    if dims_differ(dims_of(drawn)[0], dims_of(rows)[0]):
        raise ShapeError(f"expects {dims_of(drawn)[0]} rows, but got {dims_of(rows)[0]}")
    if is_integer(element_of(probabilities)) or not is_integer(element_of(rows)):
        kinds = f"{element_of(probabilities)} and {element_of(rows)}"
        raise ShapeError(f"expects float probabilities and integer rows, but got {kinds}")
    sums = _sums(widen(probabilities))
    own = emit(graph.TakeOp, sums, emit(graph.SqueezeOp, rows, axes=[1]), axis=0)
    return astype(_chosen(own, astype(drawn, element_of(sums))), element or i64())


def _sums(probabilities: ir.Value) -> ir.Value:
    return emit(graph.CumsumOp, probabilities, axis=1, exclusive=False, reverse=False)


def _chosen(sums: ir.Value, drawn: ir.Value) -> ir.Value:
    """The position of the first sum above a share of the last one."""
    classes = dims_of(sums)[1]
    total = emit(
        graph.StridedSliceOp, sums, axes=[1], begin=[classes - 1], end=[classes], strides=[1]
    )
    position = emit(graph.SearchsortedOp, sums, multiply(drawn, total), right=True)
    return minimum(position, subtract(symbol(classes, i64()), 1))
