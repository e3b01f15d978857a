"""Inverse sine, cosine and tangent: narrower types are widened to f64 where there is one."""

import math as pymath

from relax_mlir.codegen.vector_math.lanes import (
    Lanes,
    absolute,
    clamp,
    copysign,
    fast_two_sum,
    fma,
    polynomial,
    select,
    sqrt,
    two_sum,
)

# pi/2 as a sum, each part rounded to the format.
_HALF_PI = {
    32: (1.57079637, -4.37113883e-08),
    64: (1.5707963267948966, 6.123233995736766e-17),
}
# From the first on, sums overflow; below the second, quotients underflow without the third.
_HUGE = {32: 1.0e37, 64: 1.0e300}
_TINY = {32: (1.0e-30, 2.0**60), 64: (1.0e-270, 2.0**200)}
_TAN_EIGHTH_PI = 0.41421356237309503

# (asin s - s) / s^3 in s^2 on [0, 0.2505]; error of asin s relative: 2^-58.4.
_ASIN = (
    *(0.16666666666666763, 0.0749999999997005, 0.044642857175414115, 0.030381942664835054),
    *(0.022372216330404447, 0.017351585400812962, 0.013981170534984568),
    *(0.011395788855007243, 0.010799236732525433, 0.0036290985797638835),
    *(0.021909086231983625, -0.021303229515980772, 0.0328302818091392),
)
# (atan q - q) / q^3 in q^2 on |q| < 0.416; error of atan q relative: 2^-62.7.
_ATAN = (
    *(-0.33333333333333326, 0.19999999999997098, -0.14285714285316936, 0.11111111083783853),
    *(-0.09090907987224513, 0.07692279228493486, -0.06666175008005312, 0.05876518696346006),
    *(-0.05215189117817661, 0.04490570972083469, -0.03317458105044413, 0.014892986422494809),
)


def _asin_parts(magnitude: Lanes) -> tuple[Lanes, Lanes, Lanes]:
    """(whether |x| > 1/2, s, asin s - s), s = |x| or sqrt((1 - |x|) / 2).

    asin |x| is pi/2 - 2 asin s in the second case, where s is a rounded square root: the third part
    includes its rounding error.
    """
    outer = magnitude > 0.5
    square = fma(magnitude, -0.5, 0.5)
    root = sqrt(square)
    root_lost = fma(-root, root, square) / (root + root)
    root_lost = select(square.equals(0.0), square, root_lost)
    s = select(outer, root, magnitude)
    z = s * s
    return outer, s, fma(s * z, polynomial(z, _ASIN), select(outer, root_lost, 0.0))


def expand_asin(x: Lanes) -> Lanes:
    """Inverse sine to 2 ulp; NaN outside [-1, 1]."""
    outer, s, rest = _asin_parts(absolute(x))
    high, low = _HALF_PI[x.width]
    far = (high - (s + s)) - ((rest + rest) - low)
    return copysign(select(outer, far, s + rest), x)


def expand_acos(x: Lanes) -> Lanes:
    """Inverse cosine to 2 ulp; NaN outside [-1, 1]."""
    outer, s, rest = _asin_parts(absolute(x))
    high, low = _HALF_PI[x.width]
    angle = s + rest
    double = angle + angle
    far = select(x < 0.0, 2.0 * high - (double - 2.0 * low), double)
    return select(outer, far, high - (copysign(angle, x) - low))


def _atan_of_ratio(small: Lanes, large: Lanes) -> Lanes:
    """atan(small / large) for 0 <= small <= large.

    Above tan(pi/8) it is pi/4 + atan((small - large) / (small + large)).
    """
    high = small > large * _TAN_EIGHTH_PI
    difference, difference_lost = two_sum(small, -large)
    total, total_lost = fast_two_sum(large, small)
    top, bottom = select(high, difference, small), select(high, total, large)
    q = top / bottom
    # The rounding errors of the quotient and its terms, carried over to the angle.
    rest = fma(-q, bottom, top) + select(high, fma(-q, total_lost, difference_lost), 0.0)
    z = q * q
    angle = fma(q * z, polynomial(z, _ATAN), rest / bottom * fma(z, z - 1.0, 1.0)) + q
    half, half_lost = (0.5 * part for part in _HALF_PI[small.width])
    offset = select(high, small.like(half), 0.0)
    return offset + select(high, angle + half_lost, angle)


def expand_atan(x: Lanes) -> Lanes:
    """Inverse tangent to 2 ulp."""
    magnitude, one = absolute(x), x.like(1.0)
    steep = magnitude > 1.0
    # The terms of an infinite quotient would be NaN.
    magnitude = clamp(magnitude, None, 2.0**60)
    angle = _atan_of_ratio(select(steep, one, magnitude), select(steep, magnitude, one))
    high, low = _HALF_PI[x.width]
    return copysign(select(steep, high - (angle - low), angle), x)


def expand_atan2(y: Lanes, x: Lanes) -> Lanes:
    """The angle of the point (x, y), to 2 ulp, with the special values of C's atan2."""
    high, low = _HALF_PI[x.width]
    side, run = absolute(y), absolute(x)
    steep = side > run
    small = select(steep, run, side)
    large = select(steep, side, run)
    # Prevents overflow of the sum of the two, and quotients of infinities.
    huge = large > _HUGE[x.width]
    small = select(huge, small * 0.25, small)
    large = select(huge, large * 0.25, large)
    infinite = large.equals(pymath.inf)
    small = select(infinite, select(small.equals(large), x.like(1.0), small * 0.0), small)
    large = select(infinite, x.like(1.0), large)
    # Prevents underflow in the comparisons and quotients of the smallest values.
    least, scale = _TINY[x.width]
    tiny = large < least
    small = select(tiny, small * scale, small)
    large = select(tiny, large * scale, large)
    angle = _atan_of_ratio(small, select(large.equals(0.0), large.like(1.0), large))
    angle = select(steep, high - (angle - low), angle)
    left = copysign(x.like(1.0), x) < 0.0
    angle = select(left, 2.0 * high - (angle - 2.0 * low), angle)
    return copysign(angle, y)
