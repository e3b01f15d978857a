"""e^x, 2^x and e^x - 1.

e^x = 2^n e^r with x = n ln 2 + r. In `exp` and `exp2` n is rounded down, so that e^r is in [1, 2)
and the exponent field of 2^n is right over the whole normal range by itself: it becomes that of
infinity on overflow and that of zero below the least normal number, without a test.
"""

from relax_mlir.codegen.vector_math import avx512
from relax_mlir.codegen.vector_math.lanes import (
    Lanes,
    clamp,
    copysign,
    floor,
    fma,
    polynomial,
)
from relax_mlir.target import Target

LOG2E = {32: 1.44269502, 64: 1.4426950408889634}
# ln 2 as a sum, each part rounded to the format.
LN2 = {
    32: (0.693147182, -1.90465421e-09),
    64: (0.6931471805599453, 2.3190468138462996e-17),
}

# (e^r - 1) / r on [-0.001, ln 2 + 0.001]; error of e^r relative: 2^-28.4, 2^-69.
_EXP = {
    32: (0.999999821, 0.500005543, 0.166611686, 0.0419111811, 0.00779635832, 0.00194726756),
    64: (
        *(1.0, 0.5, 0.1666666666666668, 0.04166666666666137, 0.008333333333428207),
        *(0.0013888888879446443, 0.00019841270428251116, 2.480156315188051e-05),
        *(2.7557994810712296e-06, 2.754440632979978e-07, 2.521778660462109e-08),
        *(1.951979042751446e-09, 2.2357986042001542e-10),
    ),
}
# (2^r - 1) / r on [-0.001, 1.001]; error of 2^r relative: 2^-28.7, 2^-63.
_EXP2 = {
    32: (0.693147063, 0.240229085, 0.0554861724, 0.0096738413, 0.00124812068, 0.00021571308),
    64: (
        *(0.6931471805599453, 0.24022650695910225, 0.05550410866478632, 0.009618129108032145),
        *(0.0013333558119486373, 0.00015403531532541447, 1.525270184878797e-05),
        *(1.3216094993852511e-06, 1.0170209208170182e-07, 7.123043021442936e-09),
        *(4.07157961625051e-10, 3.7218710741023574e-11),
    ),
}
# (2^r - 1) / r on [0, 1], exact at both ends, singles only; error of 2^r relative: 2^-23.3.
_EXP2_SHORT = (0.693151653, 0.240159929, 0.0558169186, 0.00899285544, 0.00187862222)
# Powers of two of what is below and above are zero and infinity, those of what is beyond wrap.
_EXP2_SHORT_RANGE = (-126.75, 128.5)
# (2^r - 1) / r on [-0.5, 0.5], singles only; error of 2^r relative: 2^-23.3.
_EXP2_CENTRED = (0.693147004, 0.240222469, 0.0555070974, 0.00967128575, 0.00132701104)
# From here on x / ln 2 is rounded to a power below the normal range, which becomes zero.
_EXP_LEAST = -87.86
# (e^r - 1 - r) / r^2 on |r| <= ln 2 / 2; error of e^r - 1 relative: 2^-26.1, 2^-61.6.
_EXPM1 = {
    32: (0.49999997, 0.166665465, 0.0416674353, 0.00836627278, 0.0013870697),
    64: (
        *(0.5, 0.16666666666666677, 0.041666666666666685, 0.008333333333321811),
        *(0.0013888888888894393, 0.00019841269885315693, 2.4801587276404355e-05),
        *(2.7557245157324334e-06, 2.755733215042683e-07, 2.5108693225797187e-08),
        2.0893076565911536e-09,
    ),
}
_HALF_BELOW = {32: -0.5 + 2.0**-25, 64: -0.5 + 2.0**-54}
# Below the first e^x is less than any normal number, above the second it is infinite.
_EXP_RANGE = {32: (-88.0, 89.0), 64: (-709.0, 710.0)}
_EXP2_RANGE = {32: (-127.0, 128.0), 64: (-1023.0, 1024.0)}
_EXPM1_RANGE = {32: (-18.0, 89.0), 64: (-40.0, 710.0)}


def round_to_power(y: Lanes, exponent_offset: int = 0) -> tuple[Lanes, Lanes]:
    """The nearest integer n to `y`, and 2^(n + offset); exponents in the normal range, or one off.

    Adding 1.5 * 2^mantissa_bits leaves the integer in the low bits; with the exponent bias added
    too, a shift makes it the exponent field.
    """
    shift = _shift_of(y, exponent_offset)
    return _parts_of(y + shift, shift)


def _shift_of(y: Lanes, exponent_offset: int = 0) -> float:
    return 1.5 * 2.0**y.mantissa_bits + y.exponent_bias + exponent_offset


def _parts_of(shifted: Lanes, shift: float) -> tuple[Lanes, Lanes]:
    power = (shifted.bits() << shifted.mantissa_bits).float_from_bits()
    return shifted - shift, power


def remainder(x: Lanes, n: Lanes) -> Lanes:
    """`x - n ln 2`, rounded once or so: the first step is exact."""
    high, low = LN2[x.width]
    return fma(n, -low, fma(n, -high, x))


def expand_exp(x: Lanes, exponent_offset: int = 0) -> Lanes:
    """e^x 2^offset to 1.5 ulp; results below the least normal number are 0, exp(0) is 1."""
    low, high = _EXP_RANGE[x.width]
    x = clamp(x, low - 0.69 * exponent_offset, high - 0.69 * exponent_offset)
    # Just above -0.5: an exact tie at x = 0 must go up.
    n, power = round_to_power(fma(x, LOG2E[x.width], _HALF_BELOW[x.width]), exponent_offset)
    return polynomial(remainder(x, n), (1.0, *_EXP[x.width])) * power


def expand_exp2(x: Lanes) -> Lanes:
    """2^x to 1.3 ulp, exact at integers; results below the least normal number are 0."""
    x = clamp(x, *_EXP2_RANGE[x.width])
    n = floor(x)
    _, power = round_to_power(n)
    return polynomial(x - n, (1.0, *_EXP2[x.width])) * power


def expand_exp_approximately(x: Lanes, target: Target, *, may_be_positive: bool = True) -> Lanes:
    """e^y of singles to 2.2 ulp, for a y within 2^-23.6 |x| of x; where x <= 0, to 2^-22.4 of e^0.

    That is what rounding x once more would do. exp(0) is 1. With AVX-512, six multiplications
    or multiply-adds; elsewhere seven, and results below the least normal number are 0 or next to
    it. Without `may_be_positive`, no x is above zero.
    """
    if may_be_positive or avx512.takes(target, x):
        return expand_exp2_approximately(x * LOG2E[32], target)
    # Half as many additions: there is no upper end, where n must be rounded down.
    x = clamp(x, _EXP_LEAST, None)
    shift = _shift_of(x)
    n, power = _parts_of(fma(x, LOG2E[32], shift), shift)
    return polynomial(fma(x, LOG2E[32], -n), (1.0, *_EXP2_CENTRED)) * power


def expand_exp2_approximately(t: Lanes, target: Target) -> Lanes:
    """2^t of singles to 2.2 ulp; where t <= 0, to 2^-22.4 of 2^0, which is 1.

    Elsewhere than with AVX-512, results below the least normal number are 0.
    """
    if avx512.takes(target, t):
        return avx512.scale(polynomial(avx512.fraction(t), (1.0, *_EXP2_SHORT)), t)
    t = clamp(t, *_EXP2_SHORT_RANGE)
    n, power = round_to_power(t + _HALF_BELOW[32])
    return polynomial(t - n, (1.0, *_EXP2_SHORT)) * power


def expm1_parts(x: Lanes, exponent_offset: int = 0) -> tuple[Lanes, Lanes]:
    """(p, s) with e^x = s (1 + p) / 2^offset, s a power of two and |p| < 0.42; x in range."""
    n, power = round_to_power(x * LOG2E[x.width], exponent_offset)
    r = remainder(x, n)
    return fma(r * r, polynomial(r, _EXPM1[x.width]), r), power


def expand_expm1(x: Lanes) -> Lanes:
    """e^x - 1 to 1.8 ulp, also where it is small."""
    p, half = expm1_parts(clamp(x, *_EXPM1_RANGE[x.width]), exponent_offset=-1)
    total = fma(p, half, half - 0.5)
    return copysign(total + total, x)
