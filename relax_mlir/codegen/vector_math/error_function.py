"""The error function and its complement."""

from relax_mlir.codegen.vector_math.exponential import exp_of
from relax_mlir.codegen.vector_math.lanes import (
    Lanes,
    absolute,
    clamp,
    copysign,
    fma,
    polynomial,
    select,
)

# erf(x) / x - 1 in x^2 on |x| < 1.2 (f32), 1 (f64); error of erf relative: 2^-26, 2^-56.
_SMALL = {
    32: (
        *(0.128379151, -0.376125336, 0.112826474, -0.026818892, 0.00512938946),
        *(-0.000754954235, 6.49582144e-05),
    ),
    64: (
        *(0.12837916709551256, -0.37612638903183343, 0.11283791670936807),
        *(-0.026866170641923492, 0.005223977596329993, -0.000854832545982735),
        *(0.00012055279566499432, -1.4924444280075075e-05, 1.644384325317475e-06),
        *(-1.6181299925425112e-07, 1.3603597485625434e-08, -7.58064581432765e-10),
    ),
}
# -erfc(x) in x - 2.6 on [1.2, 4]; absolute error 2^-27.
_LARGE_CENTRE = 2.6
_LARGE = (
    *(-0.000236030144, 0.00130799739, -0.0034011493, 0.00545983389, -0.00596126914),
    *(0.00455925986, -0.00236992724, 0.00068070431, 7.69708931e-05, -0.000183747208),
    *(7.34623027e-05, -1.06595408e-07, -8.04932097e-06, 1.69362181e-06),
)
# (1 + 2x) e^(x^2) erfc(x) in (x - 4) / (x + 4) for 0 <= x <= 29; error relative: 2^-56.
_SCALED_CENTRE = 4.0
# erfc is 0 from here on.
_SCALED_END = {32: 10.2, 64: 28.0}
_SCALED = (
    *(1.2329951186255526, -0.13962111684056294, 0.015379652102618952, 0.06809705425474182),
    *(-0.10103906603625394, 0.09373283499667427, -0.06633036581363987, 0.037167515563649986),
    *(-0.01619773403590386, 0.005031969753679687, -0.0007577734885839054),
    *(-0.00019925554412479187, 0.00015062281027402889, -2.4402867705449363e-05),
    *(-1.1226116694610093e-05, 5.7168341766769525e-06, 3.0314547399423483e-07),
    *(-8.332067556297713e-07, 6.156471801645858e-08, 1.1346177110886108e-07),
    *(-7.706791199509467e-09, -1.2923956648579474e-08, -1.5691820181747458e-09),
)


def _near_zero(x: Lanes) -> Lanes:
    """erf(x) for |x| within the interval of `_SMALL`."""
    return fma(x, polynomial(x * x, _SMALL[x.width]), x)


def _complement(x: Lanes) -> Lanes:
    """erfc(x) of x >= 0: e^(-x^2) P((x - 4) / (x + 4)) / (1 + 2x)."""
    x = clamp(x, None, _SCALED_END[x.width])
    first, *others = _SCALED
    t = (x - _SCALED_CENTRE) / (x + _SCALED_CENTRE)
    rest = t * polynomial(t, others)
    square = x * x
    power = exp_of(-square, fma(-x, x, square))
    # (first + rest) (1 + fraction), all but the first term of lower precision.
    scaled = fma(power.fraction, first + rest, rest) + first
    return power.scale(scaled / fma(x, 2.0, 1.0))


def expand_erf(x: Lanes) -> Lanes:
    """Error function to 1.5 ulp, doubles to 2 ulp."""
    magnitude = absolute(x)
    if x.width == 32:
        limit = 1.2
        far = 1.0 + polynomial(clamp(magnitude, None, 4.0) - _LARGE_CENTRE, _LARGE)
    else:
        limit = 1.0
        far = 1.0 - _complement(magnitude)
    # NaN compares false and propagates in the second.
    return copysign(select(magnitude < limit, _near_zero(magnitude), far), x)


def expand_erfc(x: Lanes) -> Lanes:
    """Complementary error function, doubles to 2 ulp."""
    magnitude = absolute(x)
    far = _complement(magnitude)
    far = select(x < 0.0, 2.0 - far, far)
    return select(magnitude < 0.5, 1.0 - _near_zero(x), far)
