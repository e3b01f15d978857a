"""Arithmetic on elements and indices."""

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from relax_mlir.bindings import arith
from relax_mlir.interpreter.elements import stored_dtype
from relax_mlir.interpreter.elements import widen as read
from relax_mlir.interpreter.frame import Frame
from relax_mlir.interpreter.operators.datatype import to_integers
from relax_mlir.interpreter.step import element_of

__all__ = ["read"]

Number: TypeAlias = Any
"""A Python integer, a NumPy scalar or an array."""

addf = np.add
subf = np.subtract
mulf = np.multiply
divf = np.divide
remf = np.fmod
negf = np.negative
maximumf = np.maximum
minimumf = np.minimum
maxnumf = np.fmax
minnumf = np.fmin
andi = np.bitwise_and
ori = np.bitwise_or
xori = np.bitwise_xor


def is_bool(x: Number) -> bool:
    """Whether x is made of truth values."""
    return getattr(x, "dtype", None) == np.bool_


def signed(x: Number) -> Number:
    """i1 as the signed numbers 0 and -1."""
    return -np.asarray(x, np.int8) if is_bool(x) else x


def unsigned(x: Number) -> Number:
    """The same bits as a number that is not negative."""
    if isinstance(x, int):
        return x % (1 << 64)
    return x if is_bool(x) else x.view(np.dtype(f"uint{8 * x.dtype.itemsize}"))


def addi(a: Number, b: Number) -> Number:
    """a + b."""
    return a ^ b if is_bool(a) else a + b


def subi(a: Number, b: Number) -> Number:
    """a - b."""
    return a ^ b if is_bool(a) else a - b


def muli(a: Number, b: Number) -> Number:
    """a * b."""
    return a & b if is_bool(a) else a * b


def floordivsi(a: Number, b: Number) -> Number:
    """a / b rounded down."""
    return a // b


def ceildivsi(a: Number, b: Number) -> Number:
    """a / b rounded up."""
    return a // b + (a % b != 0)


def divsi(a: Number, b: Number) -> Number:
    """a / b rounded towards 0."""
    return (a - remsi(a, b)) // b


def remsi(a: Number, b: Number) -> Number:
    """What is left of a, with its sign."""
    if isinstance(a, int) and isinstance(b, int):
        return a % b if (a < 0) == (b < 0) else -(-a % b)
    return np.fmod(a, b)


def divui(a: Number, b: Number) -> Number:
    """a / b of numbers without sign."""
    return unsigned(a) // unsigned(b)


def ceildivui(a: Number, b: Number) -> Number:
    """a / b of numbers without sign, rounded up."""
    a, b = unsigned(a), unsigned(b)
    return a // b + (a % b != 0)


def remui(a: Number, b: Number) -> Number:
    """What is left of a, of numbers without sign."""
    return unsigned(a) % unsigned(b)


def maxsi(a: Number, b: Number) -> Number:
    """The greater."""
    return _chosen(signed(a) >= signed(b), a, b)


def minsi(a: Number, b: Number) -> Number:
    """The smaller."""
    return _chosen(signed(a) <= signed(b), a, b)


def maxui(a: Number, b: Number) -> Number:
    """The greater of numbers without sign."""
    return _chosen(unsigned(a) >= unsigned(b), a, b)


def minui(a: Number, b: Number) -> Number:
    """The smaller of numbers without sign."""
    return _chosen(unsigned(a) <= unsigned(b), a, b)


def shli(a: Number, b: Number) -> Number:
    """Bits moved up."""
    return a << b if isinstance(a, int) else np.left_shift(a, b)


def shrsi(a: Number, b: Number) -> Number:
    """Bits moved down, the sign coming in."""
    return a >> b if isinstance(a, int) else np.right_shift(a, b)


def shrui(a: Number, b: Number) -> Number:
    """Bits moved down, zeros coming in."""
    return unsigned(a) >> unsigned(b)


def select(condition: Number, a: Number, b: Number) -> Number:
    """a where the condition holds, else b."""
    return _chosen(condition, a, b)


def _chosen(condition: Number, a: Number, b: Number) -> Number:
    if np.ndim(condition):
        return np.where(condition, a, b)
    return a if condition else b


_INTEGERS: tuple[Callable[[Number, Number], Number], ...] = (
    lambda a, b: a == b,
    lambda a, b: a != b,
    lambda a, b: a < b,
    lambda a, b: a <= b,
    lambda a, b: a > b,
    lambda a, b: a >= b,
)


def cmpi(a: Number, b: Number, *, predicate: int) -> Number:
    """Compares integers: equal, different, four ways with sign, four without."""
    if predicate >= 6:
        return _INTEGERS[predicate - 4](unsigned(a), unsigned(b))
    return _INTEGERS[predicate](signed(a), signed(b))


_EQUAL, _GREATER, _LESS, _UNORDERED = 1, 2, 4, 8
_FLOATS = (0, 1, 2, 3, 4, 5, 6, 7, 9, 10, 11, 12, 13, 14, 8, 15)
"""For each predicate of MLIR, which of the four relations it accepts."""


def cmpf(a: Number, b: Number, *, predicate: int) -> Number:
    """Compares floats; some predicates hold of a NaN, others do not."""
    accepted, shape = _FLOATS[predicate], np.broadcast_shapes(np.shape(a), np.shape(b))
    found = np.zeros(shape, np.bool_)
    if accepted & _UNORDERED:
        found |= np.isnan(a) | np.isnan(b)
    for relation, compare in ((_EQUAL, np.equal), (_GREATER, np.greater), (_LESS, np.less)):
        if accepted & relation:
            found |= compare(a, b)
    return found


def extf(x: Number) -> Number:
    """The same number in more bits."""
    return x


def truncf(x: Number) -> Number:
    """The nearest number in fewer bits."""
    return x


def extsi(x: Number) -> Number:
    """The same number in more bits."""
    return signed(x)


def extui(x: Number) -> Number:
    """The same bits, zeros in front."""
    return unsigned(x)


def trunci(x: Number, *, element: str) -> Number:
    """The last bits."""
    return x & 1 != 0 if element == "i1" else x


def index_cast(x: Number) -> Number:
    """The same number as an index, or from one."""
    return signed(x)


def index_castui(x: Number) -> Number:
    """The same bits as an index, or from one."""
    return unsigned(x)


def sitofp(x: Number) -> Number:
    """The nearest float."""
    return signed(x)


def uitofp(x: Number) -> Number:
    """The nearest float of a number without sign."""
    return unsigned(x)


def fptosi(x: Number, *, element: str) -> Number:
    """The integer part; MLIR leaves open what becomes of others than the type's numbers."""
    return to_integers(np.asarray(x, np.float64), stored_dtype(element))


def fptoui(x: Number, *, element: str) -> Number:
    """The integer part as a number without sign."""
    return to_integers(np.asarray(x, np.float64), stored_dtype(f"u{element}"))


def bitcast(frame: Frame, op: arith.BitcastOp, x: Number) -> Number:
    """The same bits as another type."""
    return np.asarray(x).view(stored_dtype(element_of(op.result)))
