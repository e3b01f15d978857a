"""Floats as machines compute them: multiply-adds that round once, extrema."""

from typing import Any

import numpy as np

_SPLIT = 2.0**27 + 1


def multiply_add(a: Any, b: Any, c: Any, bits: int) -> np.ndarray:
    """a * b + c of floats of `bits`, rounded to f64 so that rounding to the type is right.

    Source: Boldo, Melquiond, Emulation of FMA and correctly rounded sums, 2008.
    """
    x, y, z = (np.asarray(v, np.float64) for v in (a, b, c))
    product = x * y
    if bits < 64:
        total, lost = _two_sum(product, z)
        return _to_odd(total, lost)
    lost = _lost(x, y)
    high, low = _two_sum(z, lost)
    total, rest = _two_sum(product, high)
    odd = _to_odd(*_two_sum(low, rest))
    exact = total + odd
    is_exact = np.isfinite(lost) & np.isfinite(exact) & (exact != 0)
    return np.where(is_exact, exact, product + z)  # which has the sign of a zero


def _two_sum(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def _lost(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """x * y without its rounded value, in fractions, whose halves do not overflow."""
    (a, first), (b, second) = np.frexp(x), np.frexp(y)
    product = a * b
    (upper, lower), (high, low) = _halves(a), _halves(b)
    lost = ((upper * high - product) + upper * low + lower * high) + lower * low
    return np.ldexp(lost, first + second)


def _halves(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    scaled = x * _SPLIT
    high = scaled - (scaled - x)
    return high, x - high


def _to_odd(total: np.ndarray, lost: np.ndarray) -> np.ndarray:
    """The sum rounded to odd: the neighbour whose last bit is set, if it is not exact."""
    total = np.asarray(total)
    is_even = (total.view(np.uint64) & np.uint64(1)) == 0
    moves = is_even & (lost != 0) & np.isfinite(lost)
    return np.where(moves, np.nextafter(total, np.copysign(np.inf, lost)), total)


def single_to_odd(x: np.ndarray) -> np.ndarray:
    """f64 as f32, rounded to odd, so that rounding it again is right."""
    with np.errstate(all="ignore"):
        near = x.astype(np.float32)
        lost = x - near
    is_even = (near.view(np.uint32) & np.uint32(1)) == 0
    moves = is_even & (lost != 0) & np.isfinite(lost)
    to = np.copysign(np.inf, lost).astype(np.float32)
    return np.where(moves, np.nextafter(near, to), near)


def extremum(a: np.ndarray, b: np.ndarray, is_max: bool, propagates: bool) -> np.ndarray:
    """The greater or lesser one, with -0 < 0; NaN if one is, or the other one."""
    ordered = np.where(is_max == (a > b), a, b)
    equal = a == b
    takes_a = np.signbit(b) if is_max else np.signbit(a)
    result = np.where(equal, np.where(takes_a, a, b), ordered)
    a_nan, b_nan = np.isnan(a), np.isnan(b)
    if propagates:
        return np.where(a_nan | b_nan, np.asarray(np.nan, result.dtype), result)
    return np.where(a_nan, b, np.where(b_nan, a, result))
