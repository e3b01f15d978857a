"""The gamma function's logarithm and its derivatives: lgamma, digamma, polygamma, zeta."""

import math

from relax_mlir.bindings import ir
from relax_mlir.dialects import graph
from relax_mlir.dialects.graph import ShapeError

from ..emit import (
    add,
    astype,
    binary,
    divide,
    element_of,
    emit,
    greater,
    less,
    multiply,
    scalar,
    subtract,
    where,
)
from .chebyshev import as_double

LANCZOS = (
    *(0.99999999999980993, 676.5203681218851, -1259.1392167224028, 771.32342877765313),
    *(-176.61502916214059, 12.507343278686905, -0.13857109526572012, 9.9843695780195716e-6),
    1.5056327351493116e-7,
)
"""Coefficients of the gamma function, for g = 7 (Lanczos, SIAM J. Num. An. B 1, 1964)."""
SHIFT = 10
BERNOULLI = (
    *(1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510),
    *(43867 / 798, -174611 / 330, 854513 / 138, -236364091 / 2730),
)
"""Bernoulli's B_2, B_4, ..."""


def _log(x: ir.Value) -> ir.Value:
    return emit(graph.LogOp, x)


def lgamma(x: ir.Value) -> ir.Value:
    """The logarithm of the absolute value of the gamma function. Source: C, ATen `lgamma`."""
    double = as_double(x)
    is_low = less(double, 0.5)
    z = subtract(where(is_low, subtract(1, double), double), 1)
    total = scalar(LANCZOS[0], ir.F64Type.get())
    for index, coefficient in enumerate(LANCZOS[1:], 1):
        total = add(total, divide(coefficient, add(z, index)))
    t = add(z, len(LANCZOS) - 1.5)
    series = add(_log(total), math.log(2 * math.pi) / 2)
    result = add(series, subtract(multiply(add(z, 0.5), _log(t)), t))
    fraction = subtract(double, emit(graph.RoundOp, double))
    sine = emit(graph.AbsOp, emit(graph.SinOp, multiply(fraction, math.pi)))
    reflected = subtract(subtract(math.log(math.pi), _log(sine)), result)
    result = where(is_low, reflected, result)
    return astype(where(emit(graph.IsinfOp, double), math.inf, result), element_of(x))


def digamma(x: ir.Value) -> ir.Value:
    """The derivative of the logarithm of the gamma function. Source: ATen `digamma`."""
    double = as_double(x)
    is_low = less(double, 0)
    z = where(is_low, subtract(1, double), double)
    shifted = add(z, SHIFT)
    inverse = divide(1, multiply(shifted, shifted))
    series = scalar(-691 / 32760, ir.F64Type.get())
    for coefficient in (1 / 132, -1 / 240, 1 / 252, -1 / 120, 1 / 12):
        series = add(multiply(series, inverse), coefficient)
    result = subtract(_log(shifted), add(divide(0.5, shifted), multiply(series, inverse)))
    for index in range(SHIFT):
        result = subtract(result, divide(1, add(z, index)))
    fraction = subtract(double, emit(graph.RoundOp, double))
    tangent = emit(graph.TanOp, multiply(fraction, math.pi))
    reflected = subtract(result, divide(math.pi, tangent))
    reflected = where(binary(graph.EqualOp, fraction, 0), math.nan, reflected)
    result = where(is_low, reflected, result)
    infinite = scalar(math.inf, ir.F64Type.get())
    pole = emit(graph.CopysignOp, infinite, emit(graph.NegativeOp, double))
    return astype(where(binary(graph.EqualOp, double, 0), pole, result), element_of(x))


def polygamma(n: int, x: ir.Value) -> ir.Value:
    """The derivative of order n of `digamma`. Source: SciPy, ATen `polygamma`."""
    if n < 0:
        raise ShapeError(f"expects an order of 0 or more, but got {n}")
    if n == 0:
        return digamma(x)
    try:
        factor = float(math.factorial(n))
    except OverflowError:
        factor = math.inf
    order = scalar(n + 1, ir.F64Type.get())
    result = multiply(zeta(order, as_double(x)), factor if n % 2 else -factor)
    return astype(result, element_of(x))


def zeta(s: ir.Value, q: ir.Value) -> ir.Value:
    """Hurwitz' zeta function: the sum of (q + k)^-s for k from 0, which exists for s above 1.

    Infinite for s = 1 and where a q + k is 0; NaN for s below 1, and for q below 0 unless s is an
    integer. Source: SciPy `zeta`; ATen `special_zeta`.
    """
    order, start = as_double(s), as_double(q)
    above, below = (emit(op, start) for op in (graph.FloorOp, graph.CeilOp))
    is_low, is_whole = less(start, 0), binary(graph.EqualOp, start, above)
    after = where(is_low, subtract(start, above), start)
    # All integers but those before the first: their sum is of two sums from fractions.
    before = where(is_low, subtract(below, start), 1)
    rest = subtract(_hurwitz(order, before), _hurwitz(order, where(is_low, subtract(1, start), 1)))
    half = multiply(order, 0.5)
    is_even = binary(graph.EqualOp, half, emit(graph.FloorOp, half))
    signed = where(is_even, rest, emit(graph.NegativeOp, rest))
    result = add(_hurwitz(order, after), where(is_low, signed, 0))
    not_integer = binary(graph.NotEqualOp, order, emit(graph.FloorOp, order))
    result = where(emit(graph.LogicalAndOp, is_low, not_integer), math.nan, result)
    is_pole = emit(graph.LogicalAndOp, is_whole, binary(graph.LessEqualOp, start, 0))
    result = where(is_pole, math.inf, result)
    result = where(binary(graph.EqualOp, order, 1), math.inf, result)
    return astype(where(less(order, 1), math.nan, result), element_of(s))


def _hurwitz(s: ir.Value, q: ir.Value) -> ir.Value:
    """The same for q above 0: SHIFT terms, and Euler and Maclaurin's sum of the others."""
    negated = emit(graph.NegativeOp, s)
    total = binary(graph.PowerOp, q, negated)
    for index in range(1, SHIFT):
        total = add(total, binary(graph.PowerOp, add(q, index), negated))
    a = add(q, SHIFT)
    last = binary(graph.PowerOp, a, negated)
    tail = add(divide(multiply(last, a), subtract(s, 1)), multiply(last, 0.5))
    term = divide(multiply(last, s), a)
    inverse = divide(1, multiply(a, a))
    for index, bernoulli in enumerate(BERNOULLI, 1):
        tail = add(tail, multiply(term, bernoulli / math.factorial(2 * index)))
        growth = multiply(add(s, 2 * index - 1), add(s, 2 * index))
        term = multiply(term, multiply(growth, inverse))
    return add(total, where(greater(last, 0), tail, 0))
