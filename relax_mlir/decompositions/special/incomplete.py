"""Incomplete gamma functions: igamma, igammac, which add up to 1."""

import math
from collections.abc import Sequence

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
    multiply,
    rank_of,
    reduce,
    scalar,
    subtract,
    where,
)
from ..loops import truth_of, while_loop
from .chebyshev import as_double, evaluate, polynomial
from .gamma import lgamma
from .normal import erfc, gauss
from .tables import LGAMMA1P, LOG1P_REST, TEMME

MOST = 1000
"""Terms of a sum or a fraction; none takes more than 300."""
EPSILON = 2.0**-53
UNIFORM = 200.0
"""From this a on Temme's expansion is used where x is near a."""
NEAR = 0.3
STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156)


def igamma(a: ir.Value, x: ir.Value) -> ir.Value:
    """P(a, x), the regularized lower one; NaN below 0. Source: SciPy `gammainc`; ATen `igamma`."""
    return _incomplete(a, x, upper=False)


def igammac(a: ir.Value, x: ir.Value) -> ir.Value:
    """Q(a, x) = 1 - P(a, x), the upper one. Source: SciPy `gammaincc`; ATen `igammac`."""
    return _incomplete(a, x, upper=True)


def _incomplete(a: ir.Value, x: ir.Value, upper: bool) -> ir.Value:
    element = element_of(a)
    a, x = as_double(a), as_double(x)
    a, x = where(_is(x, x), a, math.nan), where(_is(a, a), x, math.nan)  # of one shape
    gap = emit(graph.AbsOp, subtract(x, a))
    is_uniform = _both(greater(a, UNIFORM), less(gap, multiply(a, NEAR)))
    is_rest = emit(graph.LogicalNotOp, is_uniform)
    is_fraction = _both(is_rest, _both(greater(x, 1.1), greater(x, a)))
    is_series = _both(is_rest, emit(graph.LogicalNotOp, is_fraction))
    size = _prefactor(a, x)
    lower = multiply(size, _series(where(is_series, a, 1), where(is_series, x, 0)))
    fraction = _fraction(where(is_fraction, a, 1), where(is_fraction, x, 2))
    rest = multiply(multiply(size, a), fraction)
    if upper:
        small = where(_is_small(a, x), _of_small(a, x), subtract(1, lower))
        result = where(is_fraction, rest, small)
    else:
        result = where(is_fraction, subtract(1, rest), lower)
    result = where(is_uniform, _uniform(a, x, upper), result)
    return astype(_at_bounds(a, x, result, upper), element)


def _is(a: ir.Value, b: ir.Value | float) -> ir.Value:
    return binary(graph.EqualOp, a, b)


def _both(a: ir.Value, b: ir.Value) -> ir.Value:
    return emit(graph.LogicalAndOp, a, b)


def _at_bounds(a: ir.Value, x: ir.Value, result: ir.Value, upper: bool) -> ir.Value:
    none, whole = (1.0, 0.0) if upper else (0.0, 1.0)
    is_zero, is_far = _is(a, 0), _is(a, math.inf)
    result = where(is_zero, whole, where(is_far, none, result))
    unknown = scalar(math.nan, ir.F64Type.get())
    result = where(_is(x, 0), where(is_zero, unknown, none), result)
    result = where(_is(x, math.inf), where(is_far, unknown, whole), result)
    outside = emit(graph.LogicalOrOp, less(a, 0), less(x, 0))
    return where(outside, math.nan, result)


def _prefactor(a: ir.Value, x: ir.Value) -> ir.Value:
    """x^a e^-x / gamma(a + 1)."""
    power = subtract(multiply(a, emit(graph.LogOp, x)), x)
    direct = emit(graph.ExpOp, subtract(power, lgamma(add(a, 1))))
    inverse = divide(1, a)
    series = multiply(polynomial(multiply(inverse, inverse), STIRLING), inverse)
    exponent = multiply(a, _phi(divide(subtract(x, a), a), divide(x, a)))
    exponent = emit(graph.NegativeOp, add(exponent, series))
    size = emit(graph.SqrtOp, multiply(a, 2 * math.pi))
    return where(less(a, 10), direct, divide(emit(graph.ExpOp, exponent), size))


def _phi(mu: ir.Value, ratio: ir.Value) -> ir.Value:
    """mu - log(1 + mu), for mu = ratio - 1."""
    near = emit(graph.NegativeOp, multiply(multiply(mu, mu), evaluate(LOG1P_REST, mu)))
    far = subtract(subtract(ratio, 1), emit(graph.LogOp, ratio))
    return where(less(emit(graph.AbsOp, mu), LOG1P_REST.high), near, far)


def _any(flags: ir.Value) -> ir.Value:
    return truth_of(reduce(graph.AnyOp, flags, list(range(rank_of(flags)))))


def _series(a: ir.Value, x: ir.Value) -> ir.Value:
    """1 + x / (a + 1) + x^2 / ((a + 1) (a + 2)) + ..."""
    one = add(multiply(a, 0), 1)

    def more(n: ir.Value, term: ir.Value, total: ir.Value) -> ir.Value:
        is_left = greater(term, multiply(total, EPSILON))
        return _any(_both(is_left, less(n, MOST)))

    def turn(n: ir.Value, term: ir.Value, total: ir.Value) -> Sequence[ir.Value]:
        term = multiply(term, divide(x, add(a, n)))
        return [add(n, 1), term, add(total, term)]

    return while_loop([scalar(1, ir.F64Type.get()), one, one], more, turn)[2]


def _fraction(a: ir.Value, x: ir.Value) -> ir.Value:
    """1 / (x + 1 - a - (1 - a) / (x + 3 - a - ...)), by Lentz' algorithm; x is above a."""
    start = subtract(add(x, 1), a)
    first = divide(1, start)
    state = [scalar(1, ir.F64Type.get()), first, multiply(first, 0), first, add(first, 1)]

    def more(n: ir.Value, d: ir.Value, c: ir.Value, total: ir.Value, factor: ir.Value) -> ir.Value:
        is_left = greater(emit(graph.AbsOp, subtract(factor, 1)), 2 * EPSILON)
        return _any(_both(is_left, less(n, MOST)))

    def turn(
        n: ir.Value, d: ir.Value, c: ir.Value, total: ir.Value, factor: ir.Value
    ) -> Sequence[ir.Value]:
        top = multiply(n, subtract(a, n))
        bottom = add(start, multiply(n, 2))
        d = divide(1, add(bottom, multiply(top, d)))
        c = add(bottom, multiply(top, c))  # of which the reciprocal is carried
        factor = multiply(d, c)
        return [add(n, 1), d, divide(1, c), multiply(total, factor), factor]

    return while_loop(state, more, turn)[3]


def _is_small(a: ir.Value, x: ir.Value) -> ir.Value:
    """Where 1 - P would cancel, or x is below 1 and a is as small."""
    bound = divide(-0.4, emit(graph.LogOp, x))
    limit = where(greater(x, 0.5), multiply(x, 1.1), bound)
    return _both(binary(graph.LessEqualOp, x, 1.1), binary(graph.LessEqualOp, a, limit))


def _of_small(a: ir.Value, x: ir.Value) -> ir.Value:
    """Q by 1 - x^a / gamma(a + 1), and the rest of the series of P (DLMF 8.7.3)."""
    factor, total = scalar(1, ir.F64Type.get()), multiply(a, 0)
    for n in range(1, 24):
        factor = multiply(factor, divide(x, -n))
        total = add(total, divide(factor, add(a, n)))
    log = emit(graph.LogOp, x)
    exponent = multiply(a, subtract(log, evaluate(LGAMMA1P, a)))
    power = multiply(a, emit(graph.ExpOp, exponent))
    return emit(graph.NegativeOp, add(emit(graph.Expm1Op, exponent), multiply(power, total)))


def _uniform(a: ir.Value, x: ir.Value, upper: bool) -> ir.Value:
    """Of large a, x near it: erfc, and a series of what is left (Temme; DLMF 8.12)."""
    mu = divide(subtract(x, a), a)
    eta = multiply(mu, emit(graph.SqrtOp, multiply(evaluate(LOG1P_REST, mu), -2)))
    inverse, total = divide(1, a), scalar(0, ir.F64Type.get())
    for row in reversed(TEMME):
        total = add(multiply(total, inverse), polynomial(eta, row))
    y = multiply(eta, emit(graph.SqrtOp, multiply(a, 0.5)))
    rest = divide(multiply(gauss(y), total), emit(graph.SqrtOp, multiply(a, 2 * math.pi)))
    if upper:
        return add(multiply(erfc(y), 0.5), rest)
    return subtract(multiply(erfc(emit(graph.NegativeOp, y)), 0.5), rest)
