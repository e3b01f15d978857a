"""Element-wise operators of one tensor."""

import math

import numpy as np

from relax_mlir.interpreter.elements import exact as read

__all__ = ["read"]

erf_of = np.vectorize(math.erf, otypes=[np.float64])
erfc_of = np.vectorize(math.erfc, otypes=[np.float64])

abs = np.abs
negative = np.negative
sign = np.sign
square = np.square
acos = np.arccos
acosh = np.arccosh
asin = np.arcsin
asinh = np.arcsinh
atan = np.arctan
atanh = np.arctanh
ceil = np.ceil
cos = np.cos
cosh = np.cosh
erf = erf_of
exp = np.exp
expm1 = np.expm1
floor = np.floor
log = np.log
log10 = np.log10
log1p = np.log1p
log2 = np.log2
round = np.rint
sin = np.sin
sinh = np.sinh
sqrt = np.sqrt
tan = np.tan
tanh = np.tanh
trunc = np.trunc
isfinite = np.isfinite
isinf = np.isinf
isnan = np.isnan
signbit = np.signbit
bitwise_not = np.invert
logical_not = np.logical_not


def popcount(x: np.ndarray) -> np.ndarray:
    """The count of bits that are 1."""
    return np.bitwise_count(x.view(f"u{x.dtype.itemsize}")).astype(x.dtype)


def reciprocal(x: np.ndarray) -> np.ndarray:
    """1 / x."""
    return 1 / x


def rsqrt(x: np.ndarray) -> np.ndarray:
    """1 / sqrt(x)."""
    return 1 / np.sqrt(x)


def sigmoid(x: np.ndarray) -> np.ndarray:
    """1 / (1 + exp(-x)), without overflow."""
    power = np.exp(-np.abs(x))
    return np.where(x < 0, power, 1) / (1 + power)
