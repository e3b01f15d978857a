"""Arithmetic of complex elements, by their real and imaginary parts."""

from relax_mlir.bindings import ir
from relax_mlir.decompositions.emit import (
    add,
    astype,
    dims_of,
    element_of,
    emit,
    multiply,
    scalar,
    subtract,
)
from relax_mlir.dialects import graph
from relax_mlir.errors import ModelError

from ..node import Node
from ..registry import Pair, Value, operator
from .elementwise import converted


@operator("complex", elementwise=True, takes_pairs=True)
def complex_(node: Node) -> Value:
    """Both parts as one tensor."""
    return Pair(node.tensor(0), node.tensor(1))


@operator("real", "imag", elementwise=True, takes_pairs=True)
def part(node: Node) -> ir.Value:
    """One part; of real elements these, and zeros."""
    pair = node.pair(0)
    return pair.real if node.name == "real" else pair.imaginary


@operator("complex.add", "complex.subtract", elementwise=True)
def sum_(node: Node) -> Value:
    """The sum or the difference."""
    function = add if node.name == "add" else subtract
    return Pair(*map(function, node.pair(0).parts, node.pair(1).parts))


@operator("complex.negate", elementwise=True)
def negate(node: Node) -> Value:
    """The opposite."""
    return Pair(*(emit(graph.NegativeOp, each) for each in node.pair(0).parts))


@operator("complex.multiply", elementwise=True)
def product(node: Node) -> Value:
    """The product."""
    (a, b), (c, d) = node.pair(0).parts, node.pair(1).parts
    real = subtract(multiply(a, c), multiply(b, d))
    return Pair(real, add(multiply(a, d), multiply(b, c)))


@operator("complex.abs", elementwise=True)
def absolute(node: Node) -> ir.Value:
    """The distance from 0."""
    return emit(graph.HypotOp, *node.pair(0).parts)


@operator("complex.is_finite", elementwise=True)
def is_finite(node: Node) -> ir.Value:
    """Whether both parts are."""
    parts = (emit(graph.IsfiniteOp, each) for each in node.pair(0).parts)
    return emit(graph.LogicalAndOp, *parts)


@operator("complex.compare", elementwise=True)
def compare(node: Node) -> ir.Value:
    """Whether both parts are equal, or one is not."""
    direction = node.keyword("comparison_direction")
    if direction not in ("EQ", "NE"):
        raise ModelError(f"compares complex elements by {direction}")
    pairs = zip(node.pair(0).parts, node.pair(1).parts, strict=True)
    equal = emit(graph.LogicalAndOp, *(emit(graph.EqualOp, a, b) for a, b in pairs))
    return equal if direction == "EQ" else emit(graph.LogicalNotOp, equal)


@operator("complex.convert", elementwise=True)
def convert(node: Node) -> Value:
    """Parts of another type; the real part alone where the result is real."""
    element = node.result_element
    if not node.result.is_complex:
        return converted(node.pair(0).real, element)
    if node.element().startswith("complex"):
        return Pair(*(astype(each, element) for each in node.pair(0).parts))
    real = converted(node.tensor(0), element)
    zero = emit(graph.BroadcastToOp, scalar(0, element_of(real)), shape=list(dims_of(real)))
    return Pair(real, zero)
