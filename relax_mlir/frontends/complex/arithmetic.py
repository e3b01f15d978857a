"""Arithmetic of complex elements, by their real and imaginary parts."""

from collections.abc import Callable
from itertools import product as choices

from relax_mlir.bindings import ir
from relax_mlir.decompositions.emit import add as plus
from relax_mlir.decompositions.emit import binary, divide, emit, multiply, where
from relax_mlir.decompositions.emit import subtract as minus
from relax_mlir.dialects import graph

from .pair import Pair


def add(x: Pair, y: Pair) -> Pair:
    """The sum."""
    return Pair(*map(plus, x.parts, y.parts))


def subtract(x: Pair, y: Pair) -> Pair:
    """The difference."""
    return Pair(*map(minus, x.parts, y.parts))


def negative(x: Pair) -> Pair:
    """The opposite."""
    return x.map(negated)


def negated(x: ir.Value) -> ir.Value:
    """The opposite of a real tensor."""
    return emit(graph.NegativeOp, x)


def conjugate(x: Pair) -> Pair:
    """The imaginary part with its sign changed."""
    return Pair(x.real, negated(x.imaginary))


def rotated(x: Pair) -> Pair:
    """The product with the imaginary unit."""
    return Pair(negated(x.imaginary), x.real)


def multilinear(function: Callable[..., ir.Value], *operands: Pair) -> Pair:
    """A function that is linear in each of its operands, by its values of their parts."""
    sides: dict[int, ir.Value] = {}
    for chosen in choices((0, 1), repeat=len(operands)):
        term = function(*(x.parts[part] for x, part in zip(operands, chosen, strict=True)))
        units = sum(chosen)  # i to the power of it is the factor of the term
        own = sides.get(units % 2)
        combine = minus if units % 4 > 1 else plus
        sides[units % 2] = term if own is None else combine(own, term)
    return Pair(sides[0], sides[1])


def product(x: Pair, y: Pair) -> Pair:
    """The product."""
    return multilinear(multiply, x, y)


def quotient(x: Pair, y: Pair) -> Pair:
    """The quotient, by Smith's method: the greater part of the divisor is divided by."""
    (a, b), (c, d) = x.parts, y.parts
    is_real = binary(graph.GreaterEqualOp, size_of(c), size_of(d))
    great, small = where(is_real, c, d), where(is_real, d, c)
    ratio = divide(small, great)
    size = plus(great, multiply(small, ratio))
    p, q = where(is_real, a, b), where(is_real, b, a)
    real = divide(plus(p, multiply(q, ratio)), size)
    turn = divide(minus(q, multiply(p, ratio)), size)
    imaginary = where(is_real, turn, negated(turn))
    zero = emit(graph.LogicalAndOp, is_zero(c), is_zero(d))
    by_zero = (divide(each, size_of(c)) for each in (a, b))
    return Pair(*(where(zero, z, own) for z, own in zip(by_zero, (real, imaginary))))


def absolute(x: Pair) -> ir.Value:
    """The distance from 0."""
    return emit(graph.HypotOp, *x.parts)


def angle(x: Pair) -> ir.Value:
    """The angle to the positive real axis, from -pi to pi."""
    return emit(graph.Atan2Op, x.imaginary, x.real)


def polar(size: ir.Value, angle: ir.Value) -> Pair:
    """The element of a distance from 0 and an angle."""
    return Pair(*(multiply(size, emit(op, angle)) for op in (graph.CosOp, graph.SinOp)))


def sign(x: Pair) -> Pair:
    """The direction: the element divided by its distance from 0; 0 of 0."""
    size = absolute(x)
    zero = is_zero(size)
    return x.map(lambda part: where(zero, part, divide(part, size)))


def is_equal(x: Pair, y: Pair) -> ir.Value:
    """Whether both parts are equal."""
    parts = zip(x.parts, y.parts, strict=True)
    return emit(graph.LogicalAndOp, *(emit(graph.EqualOp, a, b) for a, b in parts))


def is_true(x: Pair) -> ir.Value:
    """Whether a part is not 0."""
    return either(x, lambda part: binary(graph.NotEqualOp, part, 0))


def either(x: Pair, predicate: Callable[[ir.Value], ir.Value]) -> ir.Value:
    """Whether a predicate holds of a part."""
    return emit(graph.LogicalOrOp, *map(predicate, x.parts))


def is_finite(x: Pair) -> ir.Value:
    """Whether both parts are."""
    return emit(graph.LogicalAndOp, *(emit(graph.IsfiniteOp, part) for part in x.parts))


def size_of(x: ir.Value) -> ir.Value:
    """The absolute value of a real tensor."""
    return emit(graph.AbsOp, x)


def is_zero(x: ir.Value) -> ir.Value:
    """Whether elements of a real tensor are 0."""
    return binary(graph.EqualOp, x, 0)
