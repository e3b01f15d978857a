"""Ops on complex elements, by their real and imaginary parts."""

from collections.abc import Callable

from relax_mlir.bindings import ir
from relax_mlir.decompositions.emit import astype, emit
from relax_mlir.dialects import graph
from relax_mlir.errors import ModelError

from ...complex import Pair, arithmetic, functions, of_real
from ..node import Node
from ..registry import Value, operator
from .elementwise import converted

UNARY: dict[str, Callable[[Pair], Value]] = {
    "abs": arithmetic.absolute,
    "cosine": functions.cosine,
    "exponential": functions.exponential,
    "exponential_minus_one": functions.exponential_minus_one,
    "is_finite": arithmetic.is_finite,
    "log": functions.logarithm,
    "log_plus_one": functions.log_plus_one,
    "logistic": functions.logistic,
    "negate": arithmetic.negative,
    "rsqrt": functions.reciprocal_root,
    "sign": arithmetic.sign,
    "sine": functions.sine,
    "sqrt": functions.square_root,
    "tan": functions.tangent,
    "tanh": functions.hyperbolic_tangent,
}

BINARY: dict[str, Callable[[Pair, Pair], Pair]] = {
    "add": arithmetic.add,
    "divide": arithmetic.quotient,
    "multiply": arithmetic.product,
    "power": functions.power,
    "subtract": arithmetic.subtract,
}


@operator("complex", elementwise=True, takes_pairs=True)
def complex_(node: Node) -> Value:
    """Both parts as one tensor."""
    return Pair(node.tensor(0), node.tensor(1))


@operator("real", "imag", elementwise=True, takes_pairs=True)
def part(node: Node) -> ir.Value:
    """One part; of real elements these, and zeros."""
    pair = node.pair(0)
    return pair.real if node.name == "real" else pair.imaginary


@operator(*(f"complex.{name}" for name in UNARY), elementwise=True)
def unary(node: Node) -> Value:
    """A function of one element."""
    return UNARY[node.name](node.pair(0))


@operator(*(f"complex.{name}" for name in BINARY), elementwise=True)
def binary(node: Node) -> Value:
    """A function of two elements."""
    return BINARY[node.name](node.pair(0), node.pair(1))


@operator("complex.compare", elementwise=True)
def compare(node: Node) -> ir.Value:
    """Whether both parts are equal, or one is not."""
    direction = node.keyword("comparison_direction")
    if direction not in ("EQ", "NE"):
        raise ModelError(f"compares complex elements by {direction}")
    equal = arithmetic.is_equal(node.pair(0), node.pair(1))
    return equal if direction == "EQ" else emit(graph.LogicalNotOp, equal)


@operator("complex.convert", elementwise=True)
def convert(node: Node) -> Value:
    """Parts of another type; the real part alone where the result is real."""
    element = node.result_element
    if not node.result.is_complex:
        return converted(node.pair(0).real, element)
    if node.element().startswith("complex"):
        return node.pair(0).map(lambda part: astype(part, element))
    return of_real(converted(node.tensor(0), element))
