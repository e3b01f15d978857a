"""Hyperbolic functions and their inverses, from e^x - 1 and log(1 + x)."""

import math as pymath

from relax_mlir.codegen.vector_math.exponential import exp_of, expand_exp
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
    two_product,
    two_sum,
)
from relax_mlir.codegen.vector_math.logarithm import expand_log, expand_log1p

# From here on e^2|x| is too large for tanh to differ from 1.
_TANH_SATURATES = {32: 20.0, 64: 44.0}
# (sinh x - x) / x^3 in x^2 on [0, 1]; error of sinh relative: 2^-63.3.
_SINH = (
    *(0.16666666666666669, 0.008333333333333148, 0.00019841269841431954, 2.75573191570453e-06),
    *(2.505212314110905e-08, 1.6057259415328355e-10, 7.758759864219102e-13),
)


def expand_tanh(x: Lanes) -> Lanes:
    """Hyperbolic tangent to 2 ulp: h / (h + 1), h = (e^2|x| - 1) / 2."""
    magnitude = absolute(x)
    power = exp_of(clamp(magnitude + magnitude, None, _TANH_SATURATES[x.width]))
    half = power.factor(-1)
    h = fma(power.fraction, half, half - 0.5)
    ratio = h / (h + 1.0)
    # Solves h - h t = t for the residual: where h is small, the error is divided by it.
    return copysign(select(h < 0.5, fma(-h, ratio, h), ratio), x)


def expand_sinh(x: Lanes) -> Lanes:
    """Hyperbolic sine, doubles to 2 ulp."""
    magnitude, square = absolute(x), x * x
    half = expand_exp(magnitude, offset=-1)
    near = fma(x * square, polynomial(square, _SINH), x)
    return select(magnitude < 1.0, near, copysign(half - 0.25 / half, x))


def expand_cosh(x: Lanes) -> Lanes:
    """Hyperbolic cosine, doubles to 2 ulp."""
    half = expand_exp(absolute(x), offset=-1)
    return half + 0.25 / half


def expand_asinh(x: Lanes) -> Lanes:
    """Inverse hyperbolic sine, doubles to 2 ulp."""
    magnitude = absolute(x)
    square = magnitude * magnitude
    near = expand_log1p(*fast_two_sum(magnitude, square / (1.0 + sqrt(square + 1.0))))
    return copysign(_far_or(magnitude, near), x)


def expand_acosh(x: Lanes) -> Lanes:
    """Inverse hyperbolic cosine, doubles to 2 ulp; NaN below 1."""
    t = x - 1.0
    square, square_lost = two_product(t, t)
    total, lost = two_sum(t + t, square)
    root = sqrt(total)
    root_lost = (fma(-root, root, total) + (lost + square_lost)) / (root + root)
    sum_, sum_lost = fast_two_sum(root, t)
    near = expand_log1p(sum_, select(root > 0.0, sum_lost + root_lost, 0.0))
    return select(x < 1.0, x.like(pymath.nan), _far_or(x, near))


def expand_atanh(x: Lanes) -> Lanes:
    """Inverse hyperbolic tangent, doubles to 2 ulp; NaN outside [-1, 1]."""
    magnitude = absolute(x)
    double = magnitude + magnitude
    rest, lost = fast_two_sum(x.like(1.0), -magnitude)
    ratio = double / rest
    ratio_lost = (fma(-ratio, rest, double) - ratio * lost) / rest
    result = expand_log1p(ratio, select(magnitude < 1.0, ratio_lost, 0.0))
    return copysign(0.5 * result, x)


def _far_or(x: Lanes, near: Lanes) -> Lanes:
    """log 2x where `x` is so large that x^2 + 1 is x^2 or overflows, else `near`."""
    return select(x > 2.0**28, expand_log(x) + pymath.log(2.0), near)
