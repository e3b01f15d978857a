"""Products of x with a distribution function: gelu and its approximation by tanh.

gelu x = x Q(-x) with Q(a) = erfc(a / sqrt 2) / 2 = G(a) e^(-a^2 / 2) / a. G varies little. So the
tail a Q(a) is a product of two sums whose first terms are exact, and is rounded once. Near 0, where
the terms of x - x Q(x) nearly cancel, x Q(-x) is x / 2 plus an even series instead.
"""

from relax_mlir.codegen.vector_math.exponential import exp2_of, exp_of
from relax_mlir.codegen.vector_math.lanes import (
    Lanes,
    absolute,
    clamp,
    fma,
    polynomial,
    select,
)
from relax_mlir.codegen.vector_math.logistic import divided

# a Q(a) is 0 from here on.
_TAIL_END = {32: 14.6, 64: 39.0}
_SERIES_END = {32: 0.8, 64: 0.7}
# (1/2 - Q(x)) / x in x^2 below; error of Q relative: 2^-28.9, 2^-66.4.
_SERIES = {
    32: (0.3989423, -0.06649068, 0.00997588, -0.001194796, 0.00012585828, -1.4269456e-05),
    64: (
        *(0.3989422804014327, -0.06649038006690543, 0.009973557010035071, -0.0011873282154664063),
        *(0.00011543468746956658, -9.444655333594246e-06, 6.659656643522277e-07),
        *(-4.1217348691339195e-08, 2.2589656765698746e-09, -1.0011468440193088e-10),
    ),
}
# G(a) in (a - c) / (a + c) above; error relative: 2^-28.1, 2^-61.3. G(c) is nearly exact.
_CENTRE = {32: 1.859375, 64: 2.0625}
_TAIL = {
    32: (
        *(0.32978895, 0.18141373, -0.1477175, 0.018946253, 0.021263111, 0.00028993926),
        *(-0.0043569333, -0.0018659317, 0.0004466319, 0.0009740927, -0.00023382077),
    ),
    64: (
        *(0.3387914155786239, 0.16583055153194512, -0.15224638811597183, 0.03848559040872207),
        *(0.016146563575604043, -0.005041762457645857, -0.004040808888483402),
        *(-8.887616331999505e-05, 0.000906771356691702, 0.00041117551230629765),
        *(-4.105738453499091e-05, -0.00013665213347009952, -6.691836455066915e-05),
        *(2.0263888472013542e-07, 2.110850817718257e-05, 1.4309808581219609e-05),
        *(3.365521342628501e-06, -2.309416045870373e-06, -3.7515022905455058e-06),
        *(-1.6929609564971107e-06, 1.8106145683019158e-06, -5.103984801670071e-07),
        *(-2.184982900821362e-06, 3.407209628159864e-06, 5.725133807614473e-07),
        *(-2.994683244248681e-06, 1.6067347093650877e-06, -2.636596554056243e-07),
    ),
}


def expand_gelu(x: Lanes) -> Lanes:
    """x erfc(-x / sqrt 2) / 2 to 2 ulp; its limit, -0, at -infinity."""
    magnitude = absolute(x)
    near = x * fma(x, polynomial(x * x, _SERIES[x.width]), 0.5)
    tail = _tail(clamp(magnitude, None, _TAIL_END[x.width]))
    far = select(x < 0.0, -tail, x - tail)
    return select(magnitude < _SERIES_END[x.width], near, far)


def _tail(a: Lanes) -> Lanes:
    """a erfc(a / sqrt 2) / 2 for a from `_SERIES_END` to `_TAIL_END`."""
    square = a * a
    lost = fma(a, a, -square)
    power = exp_of(square * -0.5, lost * -0.5)
    first, *others = _TAIL[a.width]
    centre = _CENTRE[a.width]
    t = (a - centre) / (a + centre)
    rest = t * polynomial(t, others)
    # (first + rest) (1 + fraction), all but the first term of lower precision.
    return power.scale(fma(power.fraction, first + rest, rest) + first)


# -2a / ln 2 = k x (x^2 + s), a the argument of tanh: k in two parts, s, and k times what s lacks.
_ANGLE = {
    32: (-0.10294324, 2.0161985e-09, 22.363861083984375, 1.1135864497191506e-07),
    64: (
        *(-0.1029432395800235, 5.978177400718744e-18),
        *(22.36386000223638, -7.276115401101859e-16),
    ),
}
# Below the first, the power is so large that the quotient is 0; above the second it is lost in 1.
_ANGLE_RANGE = {32: (-11.0, 7.0), 64: (-21.6, 9.0)}


def expand_gelu_tanh(x: Lanes) -> Lanes:
    """x (1 + tanh a) / 2, a = sqrt(2 / pi) (x + 0.044715 x^3), to 2 ulp; -0 at -infinity.

    It is x / (1 + e^-2a), with the exponent in two parts: its rounding error would be amplified.
    """
    inside = clamp(x, *_ANGLE_RANGE[x.width])
    high, low, offset, rest = _ANGLE[x.width]
    sum_ = fma(inside, inside, offset)
    # Exact: the offset has no lower bits than the sum.
    sum_lost = fma(inside, inside, offset - sum_)
    product = inside * sum_
    product_lost = fma(inside, sum_lost, fma(inside, sum_, -product))
    angle = product * high
    angle_lost = fma(product, low, fma(product, high, -angle))
    angle_lost = fma(inside, rest, fma(product_lost, high, angle_lost))
    return divided(x, inside, exp2_of(angle, angle_lost))
