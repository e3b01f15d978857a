"""Mathematical functions: computed in float64, then rounded to the type."""

from collections.abc import Callable
from typing import Any

import numpy as np

from relax_mlir.interpreter.elements import widen as read
from relax_mlir.interpreter.operators.unary import erf_of, erfc_of

__all__ = ["read"]


def cttz(x: Any, *, element: str) -> int:
    """The count of trailing zeros; the width if x is 0."""
    bits, width = int(x), int(element[1:])
    return (bits & -bits).bit_length() - 1 if bits else width


def ctpop(x: np.ndarray) -> np.ndarray:
    """The count of bits that are 1."""
    bits = np.asarray(x)
    return np.bitwise_count(bits.view(f"u{bits.dtype}")).astype(bits.dtype)


def _in_double(function: Callable[..., Any]) -> Callable[..., Any]:
    def compute(*operands: Any) -> Any:
        return function(*(np.asarray(x, np.float64) for x in operands))

    return compute


def _multiply_add(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """a * b + c with a product in two parts, exact where both terms nearly cancel."""
    product = a * b
    total = product + c
    (upper, lower), (high, low) = _halves(a), _halves(b)
    lost = ((upper * high - product) + upper * low + lower * high) + lower * low
    part = total - product
    rest = lost + ((product - (total - part)) + (c - part))
    return np.where(np.isfinite(rest), total + rest, total)


def _halves(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """x as a sum of two halves, products of which are exact."""
    scaled = x * (2.0**27 + 1)
    high = scaled - (scaled - x)
    return high, x - high


absf = np.abs
absi = np.abs
ceil = np.ceil
copysign = np.copysign
floor = np.floor
isfinite = np.isfinite
isinf = np.isinf
isnan = np.isnan
roundeven = np.rint
sqrt = np.sqrt
trunc = np.trunc
acos = _in_double(np.arccos)
acosh = _in_double(np.arccosh)
asin = _in_double(np.arcsin)
asinh = _in_double(np.arcsinh)
atan = _in_double(np.arctan)
atan2 = _in_double(np.arctan2)
atanh = _in_double(np.arctanh)
cbrt = _in_double(np.cbrt)
cos = _in_double(np.cos)
cosh = _in_double(np.cosh)
erf = _in_double(erf_of)
erfc = _in_double(erfc_of)
exp = _in_double(np.exp)
exp2 = _in_double(np.exp2)
expm1 = _in_double(np.expm1)
fma = _in_double(_multiply_add)
log = _in_double(np.log)
log10 = _in_double(np.log10)
log1p = _in_double(np.log1p)
log2 = _in_double(np.log2)
powf = _in_double(np.power)
fpowi = _in_double(np.power)
round = _in_double(lambda x: np.trunc(x + np.copysign(np.nextafter(0.5, 0), x)))
rsqrt = _in_double(lambda x: 1 / np.sqrt(x))
sin = _in_double(np.sin)
sinh = _in_double(np.sinh)
tan = _in_double(np.tan)
tanh = _in_double(np.tanh)
