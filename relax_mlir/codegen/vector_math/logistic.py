"""Quotients by 1 + e^y: sigmoid and silu.

The denominator is computed as (1 + e^y) / 2^k, rounded once, so that e^y may lie beyond the range
where the quotient does not.
"""

from relax_mlir.codegen.vector_math.exponential import Power, exp_of
from relax_mlir.codegen.vector_math.lanes import Lanes, clamp, select

# Below the first, e^y does not show beside 1; x e^-y is 0 beyond the second, for x = y too.
_RANGE = {32: (-30.0, 112.0), 64: (-60.0, 756.0)}
_SCALE = {32: 40, 64: 72}


def expand_sigmoid(x: Lanes) -> Lanes:
    """1 / (1 + e^-x) to 2 ulp."""
    power = exp_of(clamp(-x, *_RANGE[x.width]))
    unit = 2.0 ** -_SCALE[x.width]
    return unit / power.plus_one(-_SCALE[x.width])


def expand_silu(x: Lanes) -> Lanes:
    """x / (1 + e^-x) to 2 ulp; its limit, -0, at -infinity."""
    low, high = _RANGE[x.width]
    inside = clamp(x, -high, -low)
    return divided(x, inside, exp_of(-inside))


def divided(x: Lanes, inside: Lanes, power: Power) -> Lanes:
    """x / (1 + e^y), `inside` being x moved into an interval at whose upper end that is x."""
    scale = _SCALE[x.width]
    quotient = (inside / power.plus_one(-scale)) * 2.0**-scale
    return select(x > inside, x, quotient)
