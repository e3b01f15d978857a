"""The error function and what follows from it: erfc, erfcx, erfinv, ndtri."""

import math

from relax_mlir.bindings import ir
from relax_mlir.dialects import graph

from ..emit import (
    add,
    astype,
    binary,
    divide,
    element_of,
    emit,
    greater,
    less,
    maximum,
    minimum,
    multiply,
    scalar,
    subtract,
    where,
)
from .chebyshev import as_double, evaluate, piecewise
from .tables import ERFCX, NDTRI_CENTRE, NDTRI_FAR, NDTRI_LAST, NDTRI_NEAR

MIDDLE = 3.75
"""What the series of erfcx has in the middle of its interval."""
LARGEST = 64.0
"""Beyond, exp(-x^2) is 0, and exp(x^2) is infinite."""


def erfc(x: ir.Value) -> ir.Value:
    """1 - erf(x), without cancellation. Source: C `erfc`; ATen `erfc`."""
    double = as_double(x)
    tail = multiply(gauss(double), _scaled(maximum(double, 0)))
    result = where(greater(double, 0.5), tail, subtract(1, emit(graph.ErfOp, double)))
    return astype(result, element_of(x))


def erfcx(x: ir.Value) -> ir.Value:
    """exp(x^2) erfc(x), which decreases as 1 / x. Source: SciPy `erfcx`; ATen `special_erfcx`."""
    double = as_double(x)
    right = _scaled(emit(graph.AbsOp, double))
    left = subtract(multiply(gauss(double, 1), 2), right)
    return astype(where(less(double, 0), left, right), element_of(x))


def _scaled(x: ir.Value) -> ir.Value:
    """erfcx of elements that are not negative: (1 + 2 x) erfcx(x) as a series."""
    far = minimum(x, 1e300)
    argument = divide(subtract(far, MIDDLE), add(far, MIDDLE))
    return divide(divide(evaluate(ERFCX, argument), add(x, 0.5)), 2)


def gauss(x: ir.Value, sign: int = -1) -> ir.Value:
    """exp(-x^2), or exp(x^2): the square of a rounded x is exact, the rest is small."""
    near = minimum(maximum(x, -LARGEST), LARGEST)
    rounded = astype(astype(near, ir.F32Type.get()), ir.F64Type.get())
    rest = multiply(subtract(near, rounded), add(near, rounded))
    first = emit(graph.ExpOp, multiply(multiply(rounded, rounded), sign))
    return multiply(first, emit(graph.ExpOp, multiply(rest, sign)))


def ndtri(p: ir.Value) -> ir.Value:
    """The quantiles of the normal distribution; NaN below 0 and above 1.

    Source: SciPy `ndtri`; ATen `special_ndtri`.
    """
    double = as_double(p)
    centred = subtract(double, 0.5)
    low = where(greater(centred, 0), subtract(1, double), double)
    root = emit(graph.SqrtOp, multiply(emit(graph.LogOp, low), -2))
    inverse = divide(1, root)
    pieces = [greater(inverse, NDTRI_NEAR.low), greater(inverse, NDTRI_FAR.low)]
    size = add(root, piecewise(pieces, [NDTRI_NEAR, NDTRI_FAR, NDTRI_LAST], inverse))
    size = where(binary(graph.EqualOp, low, 0), math.inf, size)
    tail = emit(graph.CopysignOp, size, centred)
    square = multiply(centred, centred)
    middle = multiply(evaluate(NDTRI_CENTRE, square), centred)
    return astype(where(less(square, NDTRI_CENTRE.high), middle, tail), element_of(p))


def erfinv(x: ir.Value) -> ir.Value:
    """The inverse of the error function, by steps of Newton's from an estimate (Winitzki).

    Source: ATen `erfinv`.
    """
    double = as_double(x)
    log = emit(graph.Log1pOp, emit(graph.NegativeOp, multiply(double, double)))
    half = add(multiply(log, 0.5), 2 / (math.pi * 0.147))
    root = emit(graph.SqrtOp, subtract(multiply(half, half), divide(log, 0.147)))
    y = emit(graph.CopysignOp, emit(graph.SqrtOp, maximum(subtract(root, half), 0)), double)
    for _ in range(3):
        slope = multiply(emit(graph.ExpOp, emit(graph.NegativeOp, multiply(y, y))), 2)
        missing = subtract(emit(graph.ErfOp, y), double)
        step = divide(multiply(missing, math.sqrt(math.pi)), slope)
        y = subtract(y, where(emit(graph.IsfiniteOp, step), step, 0))
    size = emit(graph.AbsOp, double)
    edge = emit(graph.CopysignOp, scalar(math.inf, ir.F64Type.get()), double)
    y = where(binary(graph.EqualOp, size, 1), edge, y)
    inside = emit(graph.LogicalNotOp, greater(size, 1))
    return astype(where(inside, y, math.nan), element_of(x))
