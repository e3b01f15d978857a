"""Bessel functions of the orders 0 and 1: of both kinds, modified, scaled and spherical."""

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
    multiply,
    subtract,
    where,
)
from .chebyshev import as_double, evaluate, piecewise
from .tables import (
    I0,
    I1,
    J0,
    J0_NEAR,
    J1,
    J1_NEAR,
    K0,
    K0_DECAYING,
    K1,
    K1_DECAYING,
    P0,
    P1,
    Q0,
    Q1,
    Y0,
    Y1,
    Series,
)

WAVES = 8.0
"""From where on functions are waves of falling size (Hankel's expansion)."""
HALF = math.sqrt(0.5)


def bessel_j0(x: ir.Value) -> ir.Value:
    """The Bessel function of the first kind of order 0. Source: C `j0`; ATen `bessel_j0`."""
    size = emit(graph.AbsOp, as_double(x))
    low = _near(J0_NEAR, J0, multiply(size, size))
    return _joined(x, size, low, _waves(size, 0, first=True))


def bessel_j1(x: ir.Value) -> ir.Value:
    """The Bessel function of the first kind of order 1. Source: C `j1`; ATen `bessel_j1`."""
    double = as_double(x)
    size = emit(graph.AbsOp, double)
    low = multiply(_near(J1_NEAR, J1, multiply(size, size)), size)
    result = _joined(double, size, low, _waves(size, 1, first=True))
    flipped = where(less(double, 0), emit(graph.NegativeOp, result), result)
    return astype(flipped, element_of(x))


def bessel_y0(x: ir.Value) -> ir.Value:
    """That of the second kind of order 0; NaN below 0. Source: C `y0`; ATen `bessel_y0`."""
    double = as_double(x)
    square = multiply(double, double)
    log = multiply(emit(graph.LogOp, double), 2 / math.pi)
    low = add(evaluate(Y0, square), multiply(log, _near(J0_NEAR, J0, square)))
    return _joined(x, double, low, _waves(double, 0, first=False))


def bessel_y1(x: ir.Value) -> ir.Value:
    """That of the second kind of order 1; NaN below 0. Source: C `y1`; ATen `bessel_y1`."""
    double = as_double(x)
    square = multiply(double, double)
    log = multiply(emit(graph.LogOp, double), 2 / math.pi)
    rest = add(evaluate(Y1, square), multiply(log, _near(J1_NEAR, J1, square)))
    low = subtract(multiply(rest, double), divide(2 / math.pi, double))
    low = where(binary(graph.EqualOp, double, 0), -math.inf, low)
    return _joined(x, double, low, _waves(double, 1, first=False))


def _near(near: Series, series: Series, square: ir.Value) -> ir.Value:
    """Two series, as long ones are less accurate at their ends."""
    return piecewise([less(square, near.high)], [near, series], square)


def _joined(x: ir.Value, size: ir.Value, low: ir.Value, waves: ir.Value) -> ir.Value:
    """Either of both, 0 of what is infinite, in the type of x."""
    result = where(greater(size, WAVES), waves, low)
    zero = binary(graph.EqualOp, size, math.inf)
    return astype(where(zero, 0, result), element_of(x))


def _waves(x: ir.Value, order: int, first: bool) -> ir.Value:
    """Of either kind from 8, by P and Q: sqrt(2 / (pi x)) (P cos(angle) - Q sin(angle)).

    The angle is x - pi / 4, or x - 3 pi / 4; a function of the second kind is a quarter later.
    """
    far = maximum(x, WAVES)
    ratio = divide(WAVES, far)
    square = multiply(ratio, ratio)
    p = evaluate((P0, P1)[order], square)
    q = divide(evaluate((Q0, Q1)[order], square), far)
    sine, cosine = emit(graph.SinOp, far), emit(graph.CosOp, far)
    total, gap = multiply(add(sine, cosine), HALF), multiply(subtract(sine, cosine), HALF)
    # The cosine and the sine of the angle.
    along, across = (total, gap) if order == 0 else (gap, emit(graph.NegativeOp, total))
    if first:
        wave = subtract(multiply(p, along), multiply(q, across))
    else:
        wave = add(multiply(p, across), multiply(q, along))
    return multiply(wave, emit(graph.SqrtOp, divide(2 / math.pi, far)))


def spherical_bessel_j0(x: ir.Value) -> ir.Value:
    """sin(x) / x. Source: ATen `special_spherical_bessel_j0`."""
    double = as_double(x)
    ratio = divide(emit(graph.SinOp, double), double)
    result = where(binary(graph.EqualOp, double, 0), 1, ratio)
    return astype(where(emit(graph.IsinfOp, double), 0, result), element_of(x))


def modified_bessel_k0(x: ir.Value, *, scaled: bool = False) -> ir.Value:
    """The modified one of the second kind of order 0, or that times e^x; NaN below 0.

    Source: SciPy `k0 k0e`; ATen `modified_bessel_k0 scaled_modified_bessel_k0`.
    """
    double = as_double(x)
    square = multiply(double, double)
    log = subtract(emit(graph.LogOp, double), math.log(2))
    low = subtract(evaluate(K0, square), multiply(log, evaluate(I0, square)))
    return _decaying_or(x, double, low, evaluate(K0_DECAYING, divide(2, double)), scaled)


def modified_bessel_k1(x: ir.Value, *, scaled: bool = False) -> ir.Value:
    """The modified one of the second kind of order 1, or that times e^x; NaN below 0.

    Source: SciPy `k1 k1e`; ATen `modified_bessel_k1 scaled_modified_bessel_k1`.
    """
    double = as_double(x)
    square = multiply(double, double)
    log = subtract(emit(graph.LogOp, double), math.log(2))
    rest = multiply(multiply(log, evaluate(I1, square)), double)
    low = add(divide(evaluate(K1, square), double), rest)
    low = where(binary(graph.EqualOp, double, 0), math.inf, low)
    return _decaying_or(x, double, low, evaluate(K1_DECAYING, divide(2, double)), scaled)


def _decaying_or(
    x: ir.Value, double: ir.Value, low: ir.Value, series: ir.Value, scaled: bool
) -> ir.Value:
    """What is given up to 2, then e^-x / sqrt(x) times the series."""
    high = divide(series, emit(graph.SqrtOp, double))
    if scaled:
        low = multiply(low, emit(graph.ExpOp, double))
    else:
        high = multiply(high, emit(graph.ExpOp, emit(graph.NegativeOp, double)))
    result = where(greater(double, 2), high, low)
    zero = binary(graph.EqualOp, double, math.inf)
    return astype(where(zero, 0, result), element_of(x))
