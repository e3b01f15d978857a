"""Exact values of element-wise operators: references that are ten bits better than doubles.

Functions take and return long doubles, element by element, with the special values that the
operators' texts promise. The rounding of a long double shows as 2^-11 units in the last place of a
double; where operands would amplify it, `mpmath` computes.
"""

from collections.abc import Callable
from fractions import Fraction

import mpmath
import numpy as np

Wide = np.longdouble
Reference = Callable[..., np.ndarray]

_DIGITS = 50
_SERIES_END = 1.0
_SERIES_TERMS, _FRACTION_TERMS = 40, 320
_ROOT_PI = np.sqrt(Wide("3.14159265358979323846264338327950288"))


def is_wide() -> bool:
    """Whether long doubles are wider than doubles on this machine."""
    return bool(np.finfo(Wide).nmant >= 63)


def erf(x: np.ndarray) -> np.ndarray:
    """The error function."""
    magnitude, power = np.abs(x), _power_of_square(x, -1)
    far = 1 - power * _scaled_erfc(magnitude)
    return np.copysign(np.where(magnitude < _SERIES_END, power * _scaled_erf(magnitude), far), x)


def relu(x: np.ndarray) -> np.ndarray:
    """The element, or 0 if it is negative; NaN stays."""
    return maximum(x, np.zeros_like(x))


def sign(x: np.ndarray) -> np.ndarray:
    """-1 or 1 by the sign; zeros and NaN stay."""
    return np.where((x == 0) | np.isnan(x), x, np.copysign(Wide(1), x))


def maximum(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The greater element, NaN if either is; 0 is greater than -0."""
    return np.where((a == 0) & (b == 0), np.where(np.signbit(a), b, a), np.maximum(a, b))


def minimum(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The smaller element, NaN if either is; -0 is smaller than 0."""
    return -maximum(-a, -b)


def sigmoid(x: np.ndarray) -> np.ndarray:
    """1 / (1 + e^-x)."""
    return 1 / (1 + np.exp(-x))


def silu(x: np.ndarray) -> np.ndarray:
    """x / (1 + e^-x); at -infinity its limit, -0."""
    return np.where(x == -np.inf, Wide(-0.0), x / (1 + np.exp(-x)))


def gelu(x: np.ndarray) -> np.ndarray:
    """x erfc(-x / sqrt 2) / 2; at -infinity its limit, -0."""
    y, power = np.abs(x) / np.sqrt(Wide(2)), _power_of_square(x, -0.5)
    near = (1 - power * _scaled_erf(y)) / 2
    tail = np.where(y < _SERIES_END, near, power * _scaled_erfc(y) / 2)
    return np.where(x == -np.inf, Wide(-0.0), x * np.where(x < 0, tail, 1 - tail))


def gelu_tanh(x: np.ndarray) -> np.ndarray:
    """x / (1 + e^-2a), a = sqrt(2 / pi) (x + 0.044715 x^3); at -infinity its limit, -0."""

    def value(number: mpmath.mpf) -> mpmath.mpf:
        angle = mpmath.sqrt(2 / mpmath.pi) * (number + mpmath.mpf("0.044715") * number**3)
        return number / (1 + mpmath.exp(-2 * angle))

    middle = (np.abs(x) < 30) & (x != 0)
    far = np.where(x <= -30, Wide(-0.0), x)
    return np.where(middle, _by_mpmath(value, middle, x), far)


def logaddexp(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """log(e^a + e^b), also where it is nearly 0."""

    def value(first: mpmath.mpf, second: mpmath.mpf) -> mpmath.mpf:
        top = max(first, second)
        return top + mpmath.log1p(mpmath.exp(min(first, second) - top))

    result = np.logaddexp(a, b)
    return np.where(np.abs(result) < 0.5, _by_mpmath(value, np.abs(result) < 0.5, a, b), result)


def floor_divide(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The greatest integer not above the quotient; NumPy's values where that is none."""
    result = np.floor_divide(a, b)
    finite = np.isfinite(a) & np.isfinite(b) & (b != 0)

    def value(first: Fraction, second: Fraction) -> Fraction:
        return Fraction(first // second)

    return _by_fractions(value, finite & (result != 0), result, a, b)


def _power_of_square(x: np.ndarray, factor: float) -> np.ndarray:
    """e^(factor x^2) of numbers of at most 53 bits: the square of the upper half is exact."""
    x = np.clip(x, -1e3, 1e3)
    upper = x.astype(np.float32).astype(Wide)
    rest = (x - upper) * (x + upper)
    return np.exp(factor * upper * upper) * np.exp(factor * rest)


def _scaled_erf(x: np.ndarray) -> np.ndarray:
    """e^(x^2) erf(x) where x <= 1, by a series of positive terms."""
    term = total = np.minimum(x, Wide(_SERIES_END))
    square = term * term
    for n in range(1, _SERIES_TERMS):
        term = term * (2 * square / (2 * n + 1))
        total = total + term
    return 2 * total / _ROOT_PI


def _scaled_erfc(x: np.ndarray) -> np.ndarray:
    """e^(x^2) erfc(x) where x >= 1, by a continued fraction."""
    total = x = np.maximum(x, Wide(_SERIES_END))
    for n in range(_FRACTION_TERMS, 0, -1):
        total = x + n / (2 * total)
    return 1 / (_ROOT_PI * total)


def _by_mpmath(function: Callable, chosen: np.ndarray, *operands: np.ndarray) -> np.ndarray:
    """The function of the chosen elements; 0 elsewhere."""
    result = np.zeros(chosen.shape, Wide)
    with mpmath.workdps(_DIGITS):
        for at in zip(*np.nonzero(chosen), strict=True):
            value = function(*(mpmath.mpf(float(x[at])) for x in operands))
            result[at] = Wide(mpmath.nstr(value, 25))
    return result


def _by_fractions(
    function: Callable, chosen: np.ndarray, otherwise: np.ndarray, *operands: np.ndarray
) -> np.ndarray:
    """The function, exact, of the chosen elements."""
    result = otherwise.copy()
    for at in zip(*np.nonzero(chosen), strict=True):
        value = function(*(Fraction(float(x[at])) for x in operands))
        result[at] = Wide(value.numerator) / Wide(value.denominator)
    return result
