"""e^x, 2^x and e^x - 1.

e^x = 2^n e^r with x = n ln 2 + r, |r| <= ln 2 / 2. The last step multiplies by 2^n and rounds once,
so that results are correct down to the smallest subnormal.
"""

from dataclasses import dataclass

from relax_mlir.codegen.vector_math import avx512
from relax_mlir.codegen.vector_math.lanes import (
    Lanes,
    absolute,
    clamp,
    copysign,
    fma,
    polynomial,
    select,
)

LOG2E = {32: 1.44269502, 64: 1.4426950408889634}
# ln 2 as a sum, each part rounded to the format.
LN2 = {
    32: (0.693147182, -1.90465421e-09),
    64: (0.6931471805599453, 2.3190468138462996e-17),
}

# (e^r - 1 - r) / r^2 on |r| <= ln 2 / 2; error of e^r - 1 relative: 2^-26.1, 2^-61.6.
EXP = {
    32: (0.49999997, 0.166665465, 0.0416674353, 0.00836627278, 0.0013870697),
    64: (
        *(0.5, 0.16666666666666677, 0.041666666666666685, 0.008333333333321811),
        *(0.0013888888888894393, 0.00019841269885315693, 2.4801587276404355e-05),
        *(2.7557245157324334e-06, 2.755733215042683e-07, 2.5108693225797187e-08),
        2.0893076565911536e-09,
    ),
}
# (2^r - 1) / r on |r| <= 1/2; error of 2^r relative: 2^-28.3, 2^-64.3.
_EXP2 = {
    32: (0.6931472, 0.24022648, 0.055503596, 0.009618503, 0.0013390997, 0.0001532784),
    64: (
        *(0.6931471805599453, 0.24022650695910072, 0.05550410866482169, 0.009618129107628328),
        *(0.0013333558146392404, 0.0001540353039364282, 1.5252733854619597e-05),
        *(1.3215486593720725e-06, 1.0178051805820853e-07, 7.054974736571824e-09),
        *(4.456592548579271e-10, 2.562530544911894e-11),
    ),
}
# (2^r - 1) / r on [0, 1], exact at both ends, singles only; error of 2^r relative: 2^-23.3.
_EXP2_SHORT = (0.693151653, 0.240159929, 0.0558169186, 0.00899285544, 0.00187862222)
# Clamped to this range, exponents give zero and infinity; beyond it the exponent field wraps.
_EXP2_SHORT_RANGE = (-126.75, 128.5)
# (2^r - 1) / r on [-0.5, 0.5], singles only; error of 2^r relative: 2^-23.3.
_EXP2_CENTRED = (0.693147004, 0.240222469, 0.0555070974, 0.00967128575, 0.00132701104)
# Below, x / ln 2 rounds to an exponent below the normal range, whose power becomes zero.
_EXP_LEAST = -87.86
_HALF_BELOW = -0.5 + 2.0**-25
# Below the first, e^x rounds to 0; above the second, it is infinite.
EXP_RANGE = {32: (-104.0, 89.0), 64: (-746.0, 710.0)}
_EXP2_RANGE = {32: (-151.0, 128.0), 64: (-1076.0, 1024.0)}
_EXPM1_RANGE = {32: (-18.0, 89.0), 64: (-40.0, 710.0)}


@dataclass(frozen=True)
class Power:
    """2^n (1 + slope r + tail r^2), n an integer; `shifted` is n with `_shift_of` added."""

    n: Lanes
    shifted: Lanes
    r: Lanes
    slope: float
    tail: Lanes

    @property
    def fraction(self) -> Lanes:
        """What is added to 1, from -0.3 to 0.42."""
        first = self.r if self.slope == 1.0 else self.r * self.slope
        return fma(self.r * self.r, self.tail, first)

    @property
    def mantissa(self) -> Lanes:
        """1 + fraction, rounded once."""
        return fma(fma(self.tail, self.r, self.slope), self.r, 1.0)

    def factor(self, offset: int = 0) -> Lanes:
        """2^(n + offset), if that is a normal number."""
        bits, bias = self.n.mantissa_bits, self.n.exponent_bias
        return _as_exponent(self.n + (1.5 * 2.0**bits + bias + offset))

    def plus_one(self, offset: int = 0) -> Lanes:
        """(1 + this) 2^offset; 2^(n + offset) is a normal number. 1 over it is within 2 ulp.

        The first rounding is of a small term where the sum is just above a power of two, where a
        quotient by it is most sensitive; except for n = 0 (1.5 ulp, both roundings together).
        """
        factor = self.factor(offset)
        return fma(self.fraction, factor, 2.0**offset) + factor

    def scale(self, x: Lanes, offset: int = 0) -> Lanes:
        """x 2^(n + offset), rounded once."""
        if avx512.takes(x):
            return avx512.scale(x, self.n + float(offset) if offset else self.n)
        bits = self.shifted.bits()
        bits = bits + offset if offset else bits
        half = bits >> 1
        first, second = (part << x.mantissa_bits for part in (half, bits - half))
        return x * first.float_from_bits() * second.float_from_bits()


def _as_exponent(shifted: Lanes) -> Lanes:
    """The power of two whose exponent field is the integer in the low bits."""
    return (shifted.bits() << shifted.mantissa_bits).float_from_bits()


def _shift_of(x: Lanes) -> float:
    """The addend that puts an integer into the low bits, plus twice the exponent's bias."""
    return 1.5 * 2.0**x.mantissa_bits + 2 * x.exponent_bias


def exp_of(x: Lanes, low: Lanes | None = None) -> Power:
    """e^(x + low) for x whose power is in the range of the format; |low| is much less than |x|."""
    shift = _shift_of(x)
    shifted = fma(x, LOG2E[x.width], shift)
    n = shifted - shift
    high, rest = LN2[x.width]
    # The first step is exact.
    r = fma(n, -high, x)
    r = fma(n, -rest, r if low is None else r + low)
    return Power(n, shifted, r, 1.0, polynomial(r, EXP[x.width]))


def exp2_of(x: Lanes, low: Lanes | None = None) -> Power:
    """2^(x + low) for x whose power is in the range of the format; |low| is much less than |x|."""
    shift = _shift_of(x)
    shifted = x + shift
    n = shifted - shift
    r = x - n if low is None else (x - n) + low
    slope, *others = _EXP2[x.width]
    return Power(n, shifted, r, slope, polynomial(r, others))


def expand_exp(x: Lanes, offset: int = 0) -> Lanes:
    """e^x 2^offset to 1 ulp; exp(0) is 1."""
    low, high = EXP_RANGE[x.width]
    power = exp_of(clamp(x, low - 0.69 * offset, high - 0.69 * offset))
    return power.scale(power.mantissa, offset)


def expand_exp2(x: Lanes) -> Lanes:
    """2^x to 1 ulp, exact at integers."""
    power = exp2_of(clamp(x, *_EXP2_RANGE[x.width]))
    return power.scale(power.mantissa)


def expand_exp_approximately(x: Lanes, *, may_be_positive: bool = True) -> Lanes:
    """e^y of f32 to 2.2 ulp, for a y within 2^-23.6 |x| of x; where x <= 0, to 2^-22.4 of e^0.

    That is the effect of rounding x once more. exp(0) is 1. With AVX-512, six multiplications or
    multiply-adds; elsewhere seven, and subnormal results may be flushed to 0. Without
    `may_be_positive`, every x must be at most 0.
    """
    if may_be_positive or avx512.takes(x):
        return expand_exp2_approximately(x * LOG2E[32])
    # Half the additions: without an upper end of the range, n need not be rounded down.
    x = clamp(x, _EXP_LEAST, None)
    shift = 1.5 * 2.0**x.mantissa_bits + x.exponent_bias
    shifted = fma(x, LOG2E[32], shift)
    rest = fma(x, LOG2E[32], shift - shifted)
    return polynomial(rest, (1.0, *_EXP2_CENTRED)) * _as_exponent(shifted)


def expand_exp2_approximately(t: Lanes) -> Lanes:
    """2^t of f32 to 2.2 ulp; where t <= 0, to 2^-22.4 of 2^0, which is 1.

    Without AVX-512, subnormal results are flushed to 0.
    """
    if avx512.takes(t):
        return avx512.scale(polynomial(avx512.fraction(t), (1.0, *_EXP2_SHORT)), t)
    t = clamp(t, *_EXP2_SHORT_RANGE)
    shift = 1.5 * 2.0**t.mantissa_bits + t.exponent_bias
    shifted = (t + _HALF_BELOW) + shift
    return polynomial(t - (shifted - shift), (1.0, *_EXP2_SHORT)) * _as_exponent(shifted)


def expand_expm1(x: Lanes) -> Lanes:
    """e^x - 1 to 1.8 ulp, also where it is small."""
    power = exp_of(clamp(x, *_EXPM1_RANGE[x.width]))
    # Computes half of it: 2^n may overflow by one power where the result does not.
    half = power.factor(-1)
    total = fma(power.fraction, half, half - 0.5)
    # A tiny x is its own result, and would lose its last bit when halved.
    return copysign(select(absolute(x) < 2.0**-60, x, total + total), x)
