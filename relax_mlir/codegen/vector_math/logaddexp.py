"""log(e^a + e^b), as a pair before it is rounded: of doubles, or of singles.

The result is the greater operand plus log(1 + e^-|a - b|), which nearly cancel where it is small. A
pair is an unevaluated sum (double-double), its second part much smaller than the first.
"""

import math as pymath
import struct
from dataclasses import dataclass
from fractions import Fraction

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

# e^r - 1 is computed of r / 2^4.
_HALVINGS = 4


@dataclass(frozen=True)
class _Format:
    """Constants of a format.

    From `farthest` on, e^-x is 0; `ln2` is a sum, the product of whose first part with an exponent
    is exact; `factors` are 1/2!, ..., 1/6! as pairs.
    """

    farthest: float
    ln2: tuple[float, float, float]
    factors: tuple[tuple[float, float], ...]


def _single(x: Fraction) -> float:
    """The nearest single."""
    return struct.unpack("<f", struct.pack("<f", float(x)))[0]


def _as_singles(double: _Format) -> _Format:
    """The same constants of singles."""
    ln2 = sum(map(Fraction, double.ln2), Fraction(0))
    first = Fraction(0.693145751953125)
    second = _single(ln2 - first)
    factors = [sum(map(Fraction, pair), Fraction(0)) for pair in double.factors]
    heads = map(_single, factors)
    return _Format(
        110.0,
        (float(first), second, _single(ln2 - first - Fraction(second))),
        tuple((head, _single(x - Fraction(head))) for head, x in zip(heads, factors, strict=True)),
    )


_DOUBLE = _Format(
    760.0,
    (0.6931471805598903, 5.497923018708371e-14, 1.94704509238075e-31),
    (
        (0.5, 0.0),
        (0.16666666666666666, 9.25185853854297e-18),
        (0.041666666666666664, 2.3129646346357427e-18),
        (0.008333333333333333, 1.1564823173178714e-19),
        (0.001388888888888889, -5.300543954373577e-20),
    ),
)
_FORMATS = {32: _as_singles(_DOUBLE), 64: _DOUBLE}
# 1/7! and those that follow.
_OTHERS = tuple(1.0 / pymath.factorial(n) for n in range(7, 14))


def expand_logaddexp(a: Lanes, b: Lanes) -> Lanes:
    """log(e^a + e^b) to 2 ulp, or within 2^-95, of singles 2^-40, where that is less."""
    farthest = _FORMATS[a.width].farthest
    top = a.wrap(arith.maximumf(a.value, b.value))
    bottom = a.wrap(arith.minimumf(a.value, b.value))
    distance, lost = two_sum(bottom, -top)
    inside = distance > -farthest
    distance = select(inside | distance.differs(distance), distance, -farthest)
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
    power, format_ = exp_of(x[0]), _FORMATS[x[0].width]
    n, ln2 = power.n, format_.ln2
    product, lost = two_product(n, n.like(ln2[1]))
    high, low = two_sum(fma(n, -ln2[0], x[0]), -product)
    r = fast_two_sum(high, fma(n, -ln2[2], low - lost) + x[1])
    r = r[0] * 0.5**_HALVINGS, r[1] * 0.5**_HALVINGS
    series = fast_two_sum(n.like(0.0), r[0] * polynomial(r[0], _OTHERS))
    *factors, last = (_constant(n, factor) for factor in format_.factors)
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
