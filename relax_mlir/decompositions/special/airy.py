"""Airy's function."""

import math

from relax_mlir.bindings import ir
from relax_mlir.dialects import graph

from ..emit import (
    add,
    astype,
    divide,
    element_of,
    emit,
    greater,
    less,
    maximum,
    multiply,
    subtract,
    where,
)
from .chebyshev import as_double, evaluate, piecewise
from .tables import AIRY_DECAYING, AIRY_F, AIRY_G, AIRY_LEFT, AIRY_RIGHT


def airy_ai(x: ir.Value) -> ir.Value:
    """Ai(x): waves below 0, above it falls faster than e^-x; 0 of what is infinite.

    Source: SciPy `airy`; ATen `special_airy_ai`.
    """
    double = as_double(x)
    middle = piecewise([less(double, AIRY_LEFT.high)], [AIRY_LEFT, AIRY_RIGHT], double)
    result = where(less(double, AIRY_LEFT.low), _waves(emit(graph.NegativeOp, double)), middle)
    result = where(greater(double, AIRY_RIGHT.high), _decaying(double), result)
    return astype(where(emit(graph.IsinfOp, double), 0, result), element_of(x))


def _parts(x: ir.Value) -> tuple[ir.Value, ir.Value]:
    """2/3 x^(3/2), and 1 / (sqrt(pi) x^(1/4))."""
    root = emit(graph.SqrtOp, x)
    zeta = multiply(multiply(root, x), 2 / 3)
    return zeta, divide(1 / math.sqrt(math.pi), emit(graph.SqrtOp, root))


def _decaying(x: ir.Value) -> ir.Value:
    zeta, size = _parts(maximum(x, AIRY_RIGHT.high))
    falling = multiply(emit(graph.ExpOp, emit(graph.NegativeOp, zeta)), 0.5)
    return multiply(multiply(evaluate(AIRY_DECAYING, divide(1, zeta)), size), falling)


def _waves(x: ir.Value) -> ir.Value:
    zeta, size = _parts(maximum(x, -AIRY_LEFT.low))
    inverse = divide(1, zeta)
    square = multiply(inverse, inverse)
    f, g = evaluate(AIRY_F, square), multiply(evaluate(AIRY_G, square), inverse)
    sine, cosine = emit(graph.SinOp, zeta), emit(graph.CosOp, zeta)
    # Of zeta + pi / 4.
    along, across = add(sine, cosine), subtract(cosine, sine)
    wave = subtract(multiply(along, f), multiply(across, g))
    return multiply(multiply(wave, math.sqrt(0.5)), size)
