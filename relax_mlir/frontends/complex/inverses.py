"""Inverse functions of complex elements, by square roots that are exact at the branch cuts.

Source: W. Kahan, "Branch cuts for complex elementary functions", 1987.
"""

from relax_mlir.decompositions.emit import add, divide, emit, greater, multiply, subtract, where
from relax_mlir.dialects import graph

from .arithmetic import conjugate, negated, product, rotated, size_of
from .functions import square_root
from .pair import Pair

CLOSE = 1e20
"""Beyond it 1 plus a ratio is the ratio, whose divisor may be too small for a square."""


def _roots(x: Pair) -> tuple[Pair, Pair]:
    """The square roots of 1 - x and of 1 + x."""
    below = Pair(subtract(1, x.real), negated(x.imaginary))
    return square_root(below), square_root(Pair(add(x.real, 1), x.imaginary))


def arc_sine(x: Pair) -> Pair:
    """The angle of a sine."""
    below, above = _roots(x)
    real = emit(graph.Atan2Op, x.real, product(below, above).real)
    return Pair(real, emit(graph.AsinhOp, product(conjugate(below), above).imaginary))


def arc_cosine(x: Pair) -> Pair:
    """The angle of a cosine."""
    below, above = _roots(x)
    real = multiply(emit(graph.Atan2Op, below.real, above.real), 2)
    return Pair(real, emit(graph.AsinhOp, product(conjugate(above), below).imaginary))


def area_cosine(x: Pair) -> Pair:
    """The inverse of the hyperbolic cosine."""
    below = square_root(Pair(subtract(x.real, 1), x.imaginary))
    above = square_root(Pair(add(x.real, 1), x.imaginary))
    real = emit(graph.AsinhOp, product(conjugate(below), above).real)
    return Pair(real, multiply(emit(graph.Atan2Op, below.imaginary, above.real), 2))


def area_tangent(x: Pair) -> Pair:
    """The inverse of the hyperbolic tangent."""
    a, b = size_of(x.real), x.imaginary
    gap = subtract(1, a)
    ratio = divide(multiply(a, 4), add(multiply(gap, gap), multiply(b, b)))
    distance = emit(graph.LogOp, emit(graph.HypotOp, gap, b))
    close = subtract(multiply(emit(graph.LogOp, multiply(a, 4)), 0.5), distance)
    usual = multiply(emit(graph.Log1pOp, ratio), 0.5)
    real = multiply(where(greater(ratio, CLOSE), close, usual), 0.5)
    other = subtract(multiply(gap, add(a, 1)), multiply(b, b))
    angle = multiply(emit(graph.Atan2Op, multiply(b, 2), other), 0.5)
    return Pair(emit(graph.CopysignOp, real, x.real), angle)


def area_sine(x: Pair) -> Pair:
    """The inverse of the hyperbolic sine: the arc sine of i x, divided by i."""
    return _by_rotation(arc_sine, x)


def arc_tangent(x: Pair) -> Pair:
    """The angle of a tangent: the inverse of the hyperbolic tangent of i x, divided by i."""
    return _by_rotation(area_tangent, x)


def _by_rotation(function, x: Pair) -> Pair:  # type: ignore[no-untyped-def]
    """A function of i x, divided by i."""
    result = function(rotated(x))
    return Pair(result.imaginary, negated(result.real))
