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

Scalar: TypeAlias = Any
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


def is_bool(x: Scalar) -> bool:
    """Whether the elements of x are booleans."""
    return getattr(x, "dtype", None) == np.bool_


def signed(x: Scalar) -> Scalar:
    """i1 as the signed integers 0 and -1."""
    return -np.asarray(x, np.int8) if is_bool(x) else x


def unsigned(x: Scalar) -> Scalar:
    """The same bits as an unsigned integer."""
    if isinstance(x, int):
        return x % (1 << 64)
    return x if is_bool(x) else x.view(np.dtype(f"uint{8 * x.dtype.itemsize}"))


def addi(a: Scalar, b: Scalar) -> Scalar:
    """a + b."""
    return a ^ b if is_bool(a) else a + b


def subi(a: Scalar, b: Scalar) -> Scalar:
    """a - b."""
    return a ^ b if is_bool(a) else a - b


def muli(a: Scalar, b: Scalar) -> Scalar:
    """a * b."""
    return a & b if is_bool(a) else a * b


def _require_quotient(a: Scalar, b: Scalar, is_signed: bool) -> None:
    """Raises ValueError if two numbers have no quotient of their type; of arrays, some may not."""
    if np.ndim(a) or np.ndim(b):
        return
    if b == 0:
        raise ValueError("divides by zero")
    width = 64 if isinstance(a, int) else 8 * a.dtype.itemsize
    if is_signed and b == -1 and a == -(1 << (width - 1)):
        raise ValueError(f"has a quotient that {width} bits do not hold")


DIVISIONS = ("divsi", "divui", "remsi", "remui", "floordivsi", "ceildivsi", "ceildivui")
"""Functions that `total` completes in tensor programs."""


def total(divide: Callable[[Scalar, Scalar], Scalar]) -> Callable[[Scalar, Scalar], Scalar]:
    """A division as in tensor programs: 0 if by 0, and the least integer by -1 is itself."""

    def result(a: Scalar, b: Scalar) -> Scalar:
        if np.ndim(a) or np.ndim(b):
            return divide(a, b)
        (one,) = divide(np.atleast_1d(a), np.atleast_1d(b))
        return int(one) if isinstance(a, int) else one

    return result


def floordivsi(a: Scalar, b: Scalar) -> Scalar:
    """a / b rounded down."""
    _require_quotient(a, b, True)
    return a // b


def ceildivsi(a: Scalar, b: Scalar) -> Scalar:
    """a / b rounded up."""
    _require_quotient(a, b, True)
    return a // b + (a % b != 0)


def divsi(a: Scalar, b: Scalar) -> Scalar:
    """a / b rounded towards 0."""
    _require_quotient(a, b, True)
    return (a - remsi(a, b)) // b


def remsi(a: Scalar, b: Scalar) -> Scalar:
    """The remainder of a / b, with the sign of a."""
    _require_quotient(a, b, True)
    if isinstance(a, int) and isinstance(b, int):
        return a % b if (a < 0) == (b < 0) else -(-a % b)
    return np.fmod(a, b)


def divui(a: Scalar, b: Scalar) -> Scalar:
    """a / b of unsigned integers."""
    _require_quotient(a, b, False)
    return unsigned(a) // unsigned(b)


def ceildivui(a: Scalar, b: Scalar) -> Scalar:
    """a / b of unsigned integers, rounded up."""
    _require_quotient(a, b, False)
    a, b = unsigned(a), unsigned(b)
    return a // b + (a % b != 0)


def remui(a: Scalar, b: Scalar) -> Scalar:
    """The remainder of a / b, of unsigned integers."""
    _require_quotient(a, b, False)
    return unsigned(a) % unsigned(b)


def maxsi(a: Scalar, b: Scalar) -> Scalar:
    """The greater."""
    return _chosen(signed(a) >= signed(b), a, b)


def minsi(a: Scalar, b: Scalar) -> Scalar:
    """The smaller."""
    return _chosen(signed(a) <= signed(b), a, b)


def maxui(a: Scalar, b: Scalar) -> Scalar:
    """The greater of unsigned integers."""
    return _chosen(unsigned(a) >= unsigned(b), a, b)


def minui(a: Scalar, b: Scalar) -> Scalar:
    """The smaller of unsigned integers."""
    return _chosen(unsigned(a) <= unsigned(b), a, b)


def shli(a: Scalar, b: Scalar) -> Scalar:
    """Shift left."""
    return a << b if isinstance(a, int) else np.left_shift(a, b)


def shrsi(a: Scalar, b: Scalar) -> Scalar:
    """Arithmetic shift right."""
    return a >> b if isinstance(a, int) else np.right_shift(a, b)


def shrui(a: Scalar, b: Scalar) -> Scalar:
    """Logical shift right."""
    return unsigned(a) >> unsigned(b)


def select(condition: Scalar, a: Scalar, b: Scalar) -> Scalar:
    """a where the condition holds, else b."""
    return _chosen(condition, a, b)


def _chosen(condition: Scalar, a: Scalar, b: Scalar) -> Scalar:
    if np.ndim(condition):
        return np.where(condition, a, b)
    return a if condition else b


_INTEGERS: tuple[Callable[[Scalar, Scalar], Scalar], ...] = (
    lambda a, b: a == b,
    lambda a, b: a != b,
    lambda a, b: a < b,
    lambda a, b: a <= b,
    lambda a, b: a > b,
    lambda a, b: a >= b,
)


def cmpi(a: Scalar, b: Scalar, *, predicate: int) -> Scalar:
    """Compares integers: equality, four signed and four unsigned orders."""
    if predicate >= 6:
        return _INTEGERS[predicate - 4](unsigned(a), unsigned(b))
    return _INTEGERS[predicate](signed(a), signed(b))


_EQUAL, _GREATER, _LESS, _UNORDERED = 1, 2, 4, 8
_FLOATS = (0, 1, 2, 3, 4, 5, 6, 7, 9, 10, 11, 12, 13, 14, 8, 15)
"""For each predicate of MLIR, the mask of the relations that it accepts."""


def cmpf(a: Scalar, b: Scalar, *, predicate: int) -> Scalar:
    """Compares floats; unordered predicates hold of a NaN."""
    accepted, shape = _FLOATS[predicate], np.broadcast_shapes(np.shape(a), np.shape(b))
    result = np.zeros(shape, np.bool_)
    if accepted & _UNORDERED:
        result |= np.isnan(a) | np.isnan(b)
    for relation, compare in ((_EQUAL, np.equal), (_GREATER, np.greater), (_LESS, np.less)):
        if accepted & relation:
            result |= compare(a, b)
    return result


def extf(x: Scalar) -> Scalar:
    """The same value in a wider type."""
    return x


def truncf(x: Scalar) -> Scalar:
    """The nearest value of a narrower type."""
    return x


def extsi(x: Scalar) -> Scalar:
    """Sign extension."""
    return signed(x)


def extui(x: Scalar) -> Scalar:
    """Zero extension."""
    return unsigned(x)


def trunci(x: Scalar, *, element: str) -> Scalar:
    """The low bits."""
    return x & 1 != 0 if element == "i1" else x


def index_cast(x: Scalar) -> Scalar:
    """The same value as an index, or from one."""
    return signed(x)


def index_castui(x: Scalar) -> Scalar:
    """The same bits as an index, or from one."""
    return unsigned(x)


def sitofp(x: Scalar) -> Scalar:
    """The nearest float."""
    return signed(x)


def uitofp(x: Scalar) -> Scalar:
    """The nearest float of an unsigned integer."""
    return unsigned(x)


def fptosi(x: Scalar, *, element: str) -> Scalar:
    """The integer part; undefined in MLIR if it is out of range."""
    return to_integers(np.asarray(x, np.float64), stored_dtype(element))


def fptoui(x: Scalar, *, element: str) -> Scalar:
    """The integer part as an unsigned integer."""
    return to_integers(np.asarray(x, np.float64), stored_dtype(f"u{element}"))


def bitcast(frame: Frame, op: arith.BitcastOp, x: Scalar) -> Scalar:
    """The same bits as another type."""
    return np.asarray(x).view(stored_dtype(element_of(op.result)))
