"""Floats of 8 bits in NumPy, by the value of each of their codes.

Source: arXiv 2209.05433, 2206.02915; ONNX `Cast`.
"""

from functools import cache

import numpy as np

FORMATS = {
    "f8E4M3FN": (4, 7, 0x7E),
    "f8E5M2": (5, 15, 0x7B),
    "f8E4M3FNUZ": (4, 8, 0x7F),
    "f8E5M2FNUZ": (5, 16, 0x7F),
}
"""Bits of the exponent, its bias, and the code of the greatest value."""


@cache
def small_values(kind: str) -> np.ndarray:
    """The float32 that each of the 256 codes stands for."""
    exponent_bits, bias, last = FORMATS[kind]
    digits = 7 - exponent_bits
    size = np.arange(128)
    exponent, fraction = size >> digits, size % (1 << digits)
    significand = np.where(exponent > 0, fraction + (1 << digits), fraction)
    values = np.ldexp(np.float64(significand), np.maximum(exponent, 1) - bias - digits)
    values[last + 1 :] = np.nan
    if kind == "f8E5M2":
        values[last + 1] = np.inf
    both = np.concatenate([values, -values]).astype(np.float32)
    if kind.endswith("UZ"):
        both[128] = np.nan
    return both


def small_codes(values: np.ndarray, kind: str) -> np.ndarray:
    """The codes of the nearest values, of two as near the even one; the greatest beyond it."""
    last, wide = FORMATS[kind][2], np.asarray(values, np.float64)
    known = small_values(kind)[: last + 1].astype(np.float64)
    size = np.minimum(np.abs(np.nan_to_num(wide, nan=0, posinf=np.inf, neginf=-np.inf)), known[-1])
    above = np.searchsorted(known, size)
    below = np.maximum(above - 1, 0)
    to_above, to_below = known[above] - size, size - known[below]
    is_above = (to_above < to_below) | ((to_above == to_below) & (above % 2 == 0))
    code = np.where(is_above, above, below)
    has_sign = np.signbit(wide) & ((code > 0) | (not kind.endswith("UZ")))
    nan = 0x80 if kind.endswith("UZ") else 0x7F
    return np.where(np.isnan(wide), nan, code | has_sign * 0x80).astype(np.uint8)
