"""Quotients by 1 + e^y: sigmoid and silu.

The denominator is computed as (1 + e^y) / 2^k, so that it does not overflow where the quotient is
in range.
"""

from relax_mlir.codegen.vector_math import avx512
from relax_mlir.codegen.vector_math.exponential import EXP, LN2, LOG2E, Power, exp_of
from relax_mlir.codegen.vector_math.lanes import Lanes, clamp, fma, polynomial, select

# Below the first, 1 + e^y is 1; above the second, x e^-y is 0, for x = y too.
_RANGE = {32: (-30.0, 112.0), 64: (-60.0, 756.0)}
_SCALE = {32: 40, 64: 72}


def expand_sigmoid(x: Lanes) -> Lanes:
    """1 / (1 + e^-x) to 2 ulp."""
    low, high = _RANGE[x.width]
    # The sign becomes part of the multiply-adds that follow.
    power = exp_of(-clamp(x, -high, -low))
    unit = 2.0 ** -_SCALE[x.width]
    return unit / power.plus_one(-_SCALE[x.width])


def expand_silu(x: Lanes) -> Lanes:
    """x / (1 + e^-x) to 2 ulp; its limit, -0, at -infinity."""
    low, high = _RANGE[x.width]
    if avx512.takes(x):
        return _silu_by_scaling(clamp(x, -high, None), -low)
    inside = clamp(x, -high, -low)
    return divided(x, inside, exp_of(-inside))


def divided(x: Lanes, inside: Lanes, power: Power) -> Lanes:
    """x / (1 + e^y); `inside` is x clamped to an interval above which the result is x."""
    scale = _SCALE[x.width]
    quotient = (inside / power.plus_one(-scale)) * 2.0**-scale
    return select(x > inside, x, quotient)


def _silu_by_scaling(x: Lanes, high: float) -> Lanes:
    """2^n x / (2^n + 2^n e^-x) where 2^n e^-x is from 0.7 to 1.42: nothing leaves the range.

    Where x is above `high`, 2^n is all of the sum.
    """
    inside = clamp(x, None, high)
    bits, scale = x.mantissa_bits, _SCALE[x.width]
    # Integer plus bias is the exponent field; 2^n may be below the normal range.
    shift = 1.5 * 2.0**bits + x.exponent_bias + scale
    shifted = fma(inside, LOG2E[x.width], shift)
    n = shifted - shift
    first, rest = LN2[x.width]
    r = fma(n, rest, fma(n, first, -inside))
    fraction = fma(r * r, polynomial(r, EXP[x.width]), r)
    scaled = (shifted.bits() << bits).float_from_bits()
    # As in `Power.plus_one`, the first rounding is of a small term where it matters.
    divisor = fma(scaled, 2.0**-scale, fraction) + 1.0
    return avx512.scale(x / divisor, n)
