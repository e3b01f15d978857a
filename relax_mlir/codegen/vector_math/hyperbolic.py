"""Hyperbolic functions and their inverses, from e^x - 1 and log(1 + x)."""

import math as pymath

from relax_mlir.codegen.vector_math.exponential import expand_exp, expand_expm1, expm1_parts
from relax_mlir.codegen.vector_math.lanes import (
    Lanes,
    absolute,
    clamp,
    copysign,
    fma,
    select,
    sqrt,
)
from relax_mlir.codegen.vector_math.logarithm import expand_log, expand_log1p

# From here on e^2|x| is too large for tanh to differ from 1.
_TANH_SATURATES = {32: 20.0, 64: 44.0}


def expand_tanh(x: Lanes) -> Lanes:
    """Hyperbolic tangent to 2.5 ulp: t / (t + 2), t = e^2x - 1 = s (1 + p) - 1."""
    magnitude = absolute(x)
    p, s = expm1_parts(clamp(magnitude + magnitude, None, _TANH_SATURATES[x.width]))
    t = fma(p, s, s - 1.0)
    return copysign(t / (t + 2.0), x)


def expand_sinh(x: Lanes) -> Lanes:
    """Hyperbolic sine, doubles to 3 ulp."""
    magnitude = absolute(x)
    half = expand_exp(magnitude, exponent_offset=-1)
    small = expand_expm1(magnitude)
    near = 0.5 * (small + small / (small + 1.0))
    return copysign(select(magnitude < 1.0, near, half - 0.25 / half), x)


def expand_cosh(x: Lanes) -> Lanes:
    """Hyperbolic cosine, doubles to 2 ulp."""
    half = expand_exp(absolute(x), exponent_offset=-1)
    return half + 0.25 / half


def expand_asinh(x: Lanes) -> Lanes:
    """Inverse hyperbolic sine, doubles to 3 ulp."""
    magnitude = absolute(x)
    square = magnitude * magnitude
    near = expand_log1p(magnitude + square / (1.0 + sqrt(square + 1.0)))
    return copysign(_far_or(magnitude, near), x)


def expand_acosh(x: Lanes) -> Lanes:
    """Inverse hyperbolic cosine, doubles to 3 ulp; NaN below 1."""
    t = x - 1.0
    result = _far_or(x, expand_log1p(t + sqrt(fma(t, t, t + t))))
    return select(x < 1.0, x.like(pymath.nan), result)


def expand_atanh(x: Lanes) -> Lanes:
    """Inverse hyperbolic tangent, doubles to 3 ulp; NaN outside [-1, 1]."""
    magnitude = absolute(x)
    return copysign(0.5 * expand_log1p((magnitude + magnitude) / (1.0 - magnitude)), x)


def _far_or(x: Lanes, near: Lanes) -> Lanes:
    """log 2x where the square of `x` would lose 1 or overflow."""
    return select(x > 2.0**28, expand_log(x) + pymath.log(2.0), near)
