"""Element-wise operators of two tensors, with NumPy's broadcasting."""

import numpy as np

from relax_mlir.interpreter.elements import exact as read

__all__ = ["read"]

add = np.add
subtract = np.subtract
multiply = np.multiply
divide = np.divide
maximum = np.maximum
minimum = np.minimum
atan2 = np.arctan2
copysign = np.copysign
hypot = np.hypot
logaddexp = np.logaddexp
bitwise_and = np.bitwise_and
bitwise_or = np.bitwise_or
bitwise_xor = np.bitwise_xor
logical_and = np.logical_and
logical_or = np.logical_or
logical_xor = np.logical_xor
equal = np.equal
not_equal = np.not_equal
less = np.less
less_equal = np.less_equal
greater = np.greater
greater_equal = np.greater_equal
left_shift = np.left_shift
right_shift = np.right_shift
floor_divide = np.floor_divide
remainder = np.remainder


def logical_right_shift(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """A shift of the bits as an unsigned number."""
    unsigned = np.dtype(f"u{x.dtype.itemsize}")
    return np.right_shift(x.view(unsigned), y.view(unsigned)).view(x.dtype)


def power(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """x to the power y; for integers and negative y, the reciprocal rounded towards 0."""
    if x.dtype.kind in "fu":
        return np.power(x, y)
    one, odd = x.dtype.type(1), y % 2 != 0
    inverse = np.where(x == 1, one, np.where(x == -1, np.where(odd, -one, one), 0 * one))
    return np.where(y < 0, inverse, np.power(x, np.maximum(y, 0)))
