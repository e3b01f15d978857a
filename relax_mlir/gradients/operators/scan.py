"""Gradients of operators that accumulate along an axis."""

from typing import Any

from relax_mlir.bindings import ir
from relax_mlir.decompositions.emit import (
    astype,
    binary,
    divide,
    emit,
    multiply,
    where,
    widen,
)
from relax_mlir.dialects import graph
from relax_mlir.gradients.reverse import Adjoint, Contributions


def _settings(op: ir.OpView) -> dict[str, Any]:
    return {name: op.attributes[name].value for name in ("axis", "exclusive", "reverse")}


def _backwards(op: ir.OpView, value: ir.Value) -> ir.Value:
    """The sums over all results that an element is a part of."""
    settings = _settings(op)
    return emit(graph.CumsumOp, value, **settings | {"reverse": not settings["reverse"]})


def cumsum(op: graph.CumsumOp, adjoint: Adjoint) -> Contributions:
    """The sum from the other end."""
    yield op.input, _backwards(op, adjoint.seed)


def cumprod(op: graph.CumprodOp, adjoint: Adjoint) -> Contributions:
    """The sum of g * y over the results that an element is a part of, divided by the element.

    What follows the first zero of a line does not matter. Of that zero the products are those of
    the line with 1 in its position.
    """
    x, seed, settings = widen(op.input), widen(adjoint.seed), _settings(op)
    zero = binary(graph.EqualOp, x, 0)
    i64 = ir.IntegerType.get_signless(64)
    count = emit(graph.CumsumOp, astype(zero, i64), **settings | {"exclusive": False})
    is_before = binary(graph.EqualOp, count, 0)
    is_first = emit(graph.LogicalAndOp, zero, binary(graph.EqualOp, count, 1))
    product = emit(graph.CumprodOp, x, **settings)
    sums = divide(_backwards(op, multiply(seed, product)), where(zero, 1, x))
    others = emit(graph.CumprodOp, where(is_first, 1, x), **settings)
    of_zero = _backwards(op, multiply(seed, others))
    yield op.input, where(is_before, sums, where(is_first, of_zero, 0))
