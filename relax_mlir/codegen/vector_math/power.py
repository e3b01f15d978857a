"""Powers: x^y for floats, x^n for integers, and the cube root."""

import math as pymath
from collections.abc import Callable

from relax_mlir.bindings import arith, ir, scf
from relax_mlir.codegen.vector_math.exponential import EXP_RANGE, LN2, exp_of, expand_exp
from relax_mlir.codegen.vector_math.lanes import (
    Lanes,
    absolute,
    clamp,
    copysign,
    fast_two_sum,
    fma,
    polynomial,
    select,
    truncate,
    two_product,
)
from relax_mlir.codegen.vector_math.logarithm import expand_log, split_any

# 2/3 as a sum, each part rounded to the format.
_TWO_THIRDS = {
    32: (0.666666687, -1.98682149e-08),
    64: (0.6666666666666666, 3.700743415417188e-17),
}
# (2 atanh(s) - 2 s - 2 s^3 / 3) / s^5 in s^2 on [0, 0.0404]; relative error of the log: 2^-75.
_LOG_TAIL = (
    *(0.4, 0.2857142857142678, 0.2222222222273276, 0.18181818108122105, 0.15384621543625834),
    *(0.13333017143282974, 0.11774818685123295, 0.10330566436542538, 0.11598376905650683),
)
# Constant exponents whose powers are products: as accurate as x^y, and far shorter.
_EXACT_CHAINS = range(-2, 5)
_ROUGH_CHAINS = range(-8, 9)


def _log_in_two(x: Lanes) -> tuple[Lanes, Lanes]:
    """log x of positive finite x as a sum of two, to about 2^-64 or, of singles, 2^-40."""
    two_thirds, two_thirds_lost = _TWO_THIRDS[x.width]
    ln2, ln2_lost = LN2[x.width]
    e, m = split_any(x)
    top, bottom = m - 1.0, m + 1.0
    bottom_lost = m - (bottom - 1.0)
    s = top / bottom
    s_lost = (fma(-s, bottom, top) - s * bottom_lost) / bottom
    z, z_lost = two_product(s, s)
    z_lost = fma(s + s, s_lost, z_lost)
    # 2 s + s z (2/3 + z Q(z)): all but Q as double-double.
    series, series_lost = fast_two_sum(x.like(two_thirds), z * polynomial(z, _LOG_TAIL))
    series_lost = series_lost + two_thirds_lost
    cube, cube_lost = two_product(s, z)
    cube_lost = fma(s, z_lost, fma(s_lost, z, cube_lost))
    term, term_lost = two_product(cube, series)
    term_lost = fma(cube, series_lost, fma(cube_lost, series, term_lost))
    near, near_lost = fast_two_sum(s + s, term)
    near_lost = near_lost + (term_lost + (s_lost + s_lost))
    far, far_lost = two_product(e, x.like(ln2))
    total, lost = fast_two_sum(far, near)
    return fast_two_sum(total, lost + fma(e, ln2_lost, far_lost + near_lost))


def _positive_power(x: Lanes, y: Lanes) -> Lanes:
    """x^y of x >= 0 to 2 ulp."""
    high, low = _log_in_two(x)
    high = select(x.equals(0.0), x.like(-pymath.inf), high)
    high = select(x < pymath.inf, high, x)
    product, lost = two_product(high, y)
    lost = fma(low, y, lost)
    # Beyond the range of results the second part may be that of an infinity.
    inside = clamp(product, *EXP_RANGE[x.width])
    power = exp_of(inside, select(inside.equals(product), lost, 0.0))
    return power.scale(power.mantissa)


def expand_powf(x: Lanes, y: Lanes) -> Lanes:
    """x^y, doubles to 2 ulp, with the special values of C's pow."""
    chain = _chain(x, y.splat, _EXACT_CHAINS)
    return _with_signs(x, y, _positive_power) if chain is None else chain


def expand_powf_roughly(x: Lanes, y: Lanes) -> Lanes:
    """`expand_powf` in doubles whose results are rounded to singles: 2^-45."""
    chain = _chain(x, y.splat, _ROUGH_CHAINS)
    return _with_signs(x, y, lambda x, y: expand_exp(y * expand_log(x))) if chain is None else chain


def _with_signs(x: Lanes, y: Lanes, positive: Callable[[Lanes, Lanes], Lanes]) -> Lanes:
    """x^y for any x, from a function for x >= 0."""
    magnitude = absolute(x)
    result = positive(magnitude, y)
    result = select(magnitude.equals(1.0) & y.equals(y), x.like(1.0), result)
    half = y * 0.5
    odd = truncate(y).equals(y) & truncate(half).differs(half)
    result = select(odd, copysign(result, x), result)
    undefined = (x < 0.0) & (x > -pymath.inf) & truncate(y).differs(y)
    result = select(undefined, x.like(pymath.nan), result)
    return select(x.equals(1.0) | y.equals(0.0), x.like(1.0), result)


def expand_fpowi(x: Lanes, n: Lanes) -> Lanes:
    """x^n for an integer n, doubles to 2 ulp; n is rounded to a double first."""
    return expand_powf(x, n.converted(x.element))


def expand_cbrt(x: Lanes) -> Lanes:
    """Cube root to 1 ulp: e^(log x / 3) and a step of Newton's method."""
    magnitude = absolute(x)
    # The residual y^3 - x of the smallest x would be subnormal.
    least, scale = {32: (-90, 60), 64: (-900, 180)}[x.width]
    tiny = magnitude < 2.0**least
    scaled = select(tiny, magnitude * 2.0**scale, magnitude)
    y = expand_exp(expand_log(scaled) * (1.0 / 3.0))
    square = y * y
    better = y - fma(square, y, -scaled) / (3.0 * square)
    better = select(tiny, better * 2.0 ** (-scale // 3), better)
    finite = (magnitude > 0.0) & (magnitude < pymath.inf)
    return copysign(select(finite, better, magnitude), x)


def expand_ipowi(x: Lanes, n: Lanes) -> Lanes:
    """x^n of integers, wrapping; with n < 0 it is 0 unless x is 1 or -1.

    Squares and multiplies over the bits of n in a loop.
    """
    zero, one = n.like(0), n.like(1)
    index = ir.IndexType.get()
    low, high, step = (arith.constant(index, bound) for bound in (0, x.width, 1))
    loop = scf.ForOp(low, high, step, [x.like(1).value, x.value, n.value])
    with ir.InsertionPoint(loop.body):
        power, base, left = map(x.wrap, loop.inner_iter_args)
        power = select((left & 1).equals(1), power * base, power)
        scf.yield_([power.value, (base * base).value, (left >> 1).value])
    power = x.wrap(loop.results[0])
    negative = (n >> (n.width - 1)).differs(zero)
    sign = select((n & 1).equals(one), x, x.like(1))
    unit = x.equals(1) | x.equals(-1)
    return select(negative, select(unit, sign, 0), power)


def _chain(x: Lanes, n: float | None, few: range) -> Lanes | None:
    """x^n by products, if n is a constant in `few`."""
    if n is None or n not in few:
        return None
    base = 1.0 / x if n < 0 else x
    return _product(base, int(abs(n)))


def _product(x: Lanes, n: int) -> Lanes:
    if n == 0:
        return x.like(1.0)
    if n == 1:
        return x
    half = _product(x, n // 2)
    return half * half * x if n % 2 else half * half
