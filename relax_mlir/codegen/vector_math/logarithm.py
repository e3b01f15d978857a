"""Logarithms: x = 2^e m with m in [2/3, 4/3), and log m = 2 atanh(s), s = (m - 1) / (m + 1).

Written with f = m - 1, 2 atanh(s) = f - s (f - s^2 P(s^2)): the first term is exact.
"""

import math as pymath

from relax_mlir.codegen.vector_math.exponential import LN2
from relax_mlir.codegen.vector_math.lanes import Lanes, copysign, fma, polynomial, select

# (2 atanh(s) - 2 s) / s^3 in s^2 on [0, 0.0404]; error of the logarithm relative: 2^-28.4, 2^-60.
LOG = {
    32: (0.666669548, 0.399570644, 0.303772122),
    64: (
        *(0.666666666666666, 0.40000000000057684, 0.28571428555330153, 0.22222224380102648),
        *(0.1818165948680369, 0.15391354032739235, 0.13169152505299145, 0.1387468574298113),
    ),
}
_TWO_THIRDS_BITS = {32: 0x3F2AAAAB, 64: 0x3FE5555555555555}
_ONE_BITS = {32: 0x3F800000, 64: 0x3FF0000000000000}
# 1 / ln 2, 1 / ln 10 and log10 2 as sums, each part rounded to the format.
_LOG2E = {
    32: (1.44269502, 1.92596303e-08),
    64: (1.4426950408889634, 2.0355273740931033e-17),
}
_LOG10E = {
    32: (0.434294492, -1.010305e-08),
    64: (0.4342944819032518, 1.098319650216765e-17),
}
_LOG10_2 = {
    32: (0.30103001, -1.43209888e-08),
    64: (0.3010299956639812, -2.8037281277851704e-18),
}


def split(x: Lanes) -> tuple[Lanes, Lanes]:
    """(e, m), floats, with x = 2^e m and m in [2/3, 4/3), for normal positive x."""
    bits, mantissa = x.mantissa_bits, (1 << x.mantissa_bits) - 1
    two_thirds = _TWO_THIRDS_BITS[x.width]
    shifted = x.bits() + (_ONE_BITS[x.width] - two_thirds)
    m = ((shifted & mantissa) + two_thirds).float_from_bits()
    # With the exponent of 2^bits, the mantissa field is an integer in units of the last place.
    base = 2.0**bits
    field = ((shifted >> bits) | ((x.exponent_bias + bits) << bits)).float_from_bits()
    return field - (base + x.exponent_bias), m


def split_any(x: Lanes) -> tuple[Lanes, Lanes]:
    """`split` for subnormal x too."""
    least, scale = 2.0 ** (1 - x.exponent_bias), x.mantissa_bits + 1
    tiny = x < least
    e, m = split(select(tiny, x * 2.0**scale, x))
    return select(tiny, e - float(scale), e), m


def log_of_one_plus(f: Lanes) -> Lanes:
    """log(1 + f) for f in [-1/3, 1/3], 0.7 ulp."""
    s = f / (f + 2.0)
    z = s * s
    return f - s * (f - z * polynomial(z, LOG[f.width]))


def _with_edges(x: Lanes, result: Lanes) -> Lanes:
    """`result` for positive finite x; a logarithm's values elsewhere."""
    below = select(x.equals(0.0), x.like(-pymath.inf), pymath.nan)
    result = select(x <= 0.0, below, result)
    # Infinity and NaN are their own logarithms.
    return select(x < pymath.inf, result, x)


def _sum(e: Lanes, unit: tuple[float, float], rest: Lanes) -> Lanes:
    """`e * unit + rest`, the unit in two parts."""
    return fma(e, unit[0], fma(e, unit[1], rest))


def expand_log(x: Lanes) -> Lanes:
    """Natural logarithm to 1.2 ulp."""
    e, m = split_any(x)
    return _with_edges(x, _sum(e, LN2[x.width], log_of_one_plus(m - 1.0)))


def expand_log2(x: Lanes) -> Lanes:
    """Logarithm to base 2 to 1.7 ulp, exact at powers of two."""
    e, m = split_any(x)
    natural = log_of_one_plus(m - 1.0)
    high, low = _LOG2E[x.width]
    return _with_edges(x, fma(natural, high, fma(natural, low, e)))


def expand_log10(x: Lanes) -> Lanes:
    """Logarithm to base 10 to 1.8 ulp."""
    e, m = split_any(x)
    natural = log_of_one_plus(m - 1.0)
    high, low = _LOG10E[x.width]
    fraction = fma(natural, high, natural * low)
    return _with_edges(x, _sum(e, _LOG10_2[x.width], fraction))


def expand_log1p(x: Lanes, low: Lanes | None = None) -> Lanes:
    """log(1 + x + low) to 1.7 ulp, also where it is small; |low| is much less than |x|.

    The rounding error of the sum, divided by the sum, is added to the logarithm.
    """
    u = x + 1.0
    lost = x - (u - 1.0)
    lost = lost if low is None else lost + low
    e, m = split(u)
    bits = x.mantissa_bits
    scale = (m.bits() - (u.bits() - _ONE_BITS[x.width])).float_from_bits()
    f = m - 1.0
    # Relative to 1 + f: about the quotient by it.
    share = lost * scale * fma(f, f - 1.0, 1.0)
    # For greater x, 1 + x is x and the scale may overflow.
    share = select(x < 2.0 ** (bits + 1), share, 0.0)
    return _with_edges(u, copysign(_sum(e, LN2[x.width], log_of_one_plus(f) + share), x))
