"""log(e^a + e^b) of doubles, as a pair of doubles before it is rounded.

The result is the greater operand plus log(1 + e^-|a - b|), which nearly cancel where it is small. A
pair is an unevaluated sum (double-double), its second part much smaller than the first.
"""

import math as pymath

from relax_mlir.bindings import arith
from relax_mlir.codegen.vector_math.exponential import Power, exp_of
from relax_mlir.codegen.vector_math.lanes import (
    Lanes,
    absolute,
    fast_two_sum,
    fma,
    polynomial,
    select,
    two_product,
    two_sum,
)
from relax_mlir.codegen.vector_math.logarithm import expand_log1p

Pair = tuple[Lanes, Lanes]

# From here on e^-x is 0.
_FARTHEST = 760.0
# ln 2 as a sum; the product of the first part with an exponent is exact.
_LN2 = (0.6931471805598903, 5.497923018708371e-14, 1.94704509238075e-31)
# e^r - 1 is computed of r / 2^4.
_HALVINGS = 4
# 1/2!, ..., 1/6! as pairs, and those that follow rounded.
_INVERSE_FACTORIALS = (
    (0.5, 0.0),
    (0.16666666666666666, 9.25185853854297e-18),
    (0.041666666666666664, 2.3129646346357427e-18),
    (0.008333333333333333, 1.1564823173178714e-19),
    (0.001388888888888889, -5.300543954373577e-20),
)
_OTHERS = tuple(1.0 / pymath.factorial(n) for n in range(7, 14))


def expand_logaddexp(a: Lanes, b: Lanes) -> Lanes:
    """log(e^a + e^b) to 2 ulp, or within 2^-95 where that is less."""
    top = a.wrap(arith.maximumf(a.value, b.value))
    bottom = a.wrap(arith.minimumf(a.value, b.value))
    distance, lost = two_sum(bottom, -top)
    inside = distance > -_FARTHEST
    distance = select(inside | distance.differs(distance), distance, -_FARTHEST)
    high, low = _log_of_one_plus(_exp((distance, select(inside, lost, 0.0))))
    total, lost = two_sum(top, high)
    # The difference of equal infinities is 0, and so is the error of an infinity.
    return select(absolute(top) < pymath.inf, total + (lost + low), top)


def _add(a: Pair, b: Pair) -> Pair:
    total, lost = two_sum(a[0], b[0])
    return fast_two_sum(total, lost + (a[1] + b[1]))


def _multiply(a: Pair, b: Pair) -> Pair:
    product, lost = two_product(a[0], b[0])
    return fast_two_sum(product, fma(a[0], b[1], fma(a[1], b[0], lost)))


def _constant(x: Lanes, parts: tuple[float, float]) -> Pair:
    return x.like(parts[0]), x.like(parts[1])


def _fraction(x: Pair) -> tuple[Pair, Power]:
    """(p, power): e^x = 2^n (1 + p), n being the power's."""
    power = exp_of(x[0])
    n = power.n
    product, lost = two_product(n, n.like(_LN2[1]))
    high, low = two_sum(fma(n, -_LN2[0], x[0]), -product)
    r = fast_two_sum(high, fma(n, -_LN2[2], low - lost) + x[1])
    r = r[0] * 0.5**_HALVINGS, r[1] * 0.5**_HALVINGS
    series = fast_two_sum(n.like(0.0), r[0] * polynomial(r[0], _OTHERS))
    *factors, last = (_constant(n, factor) for factor in _INVERSE_FACTORIALS)
    series = _add(last, series)
    for factor in reversed(factors):
        series = _add(factor, _multiply(r, series))
    p = _add(r, _multiply(_multiply(r, r), series))
    for _ in range(_HALVINGS):
        p = _add((p[0] + p[0], p[1] + p[1]), _multiply(p, p))
    return p, power


def _exp(x: Pair) -> Pair:
    p, power = _fraction(x)
    high, low = _add(_constant(x[0], (1.0, 0.0)), p)
    return power.scale(high), power.scale(low)


def _log_of_one_plus(x: Pair) -> Pair:
    """log(1 + x) for x from 0 to 1: a step of Newton's method, with e^-y - 1 as a pair."""
    y = expand_log1p(x[0])
    p, power = _fraction((-y, y.like(0.0)))
    factor = power.factor()
    less = _add((factor - 1.0, y.like(0.0)), (p[0] * factor, p[1] * factor))
    step = _add(_add(x, less), _multiply(x, less))
    high, low = two_sum(y, step[0])
    return high, low + step[1]
