"""Element types in NumPy: how elements are stored, and conversions that round once.

NumPy has no bfloat16: it is stored as its bits in uint16, and computed with as float32, which holds
each of its values.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np

from relax_mlir.bindings import ir

STORED: dict[str, np.dtype] = {
    "f64": np.dtype(np.float64),
    "f32": np.dtype(np.float32),
    "f16": np.dtype(np.float16),
    "bf16": np.dtype(np.uint16),
    "i1": np.dtype(np.bool_),
    "index": np.dtype(np.int64),
    **{f"{sign}{bits}": np.dtype(f"int{bits}") for sign in ("i", "si") for bits in (8, 16, 32, 64)},
    **{f"ui{bits}": np.dtype(f"uint{bits}") for bits in (8, 16, 32, 64)},
    # The bits of masks as one number, an integer of Python.
    **{f"i{bits}": np.dtype(object) for bits in (2, 4, 128, 256, 512)},
}
"""The dtype in which each element type is stored."""

Read = Callable[[Any, str], Any]
"""How an operand of an element type is read: `stored`, `widen` or `exact`."""

GARBAGE = 0x55
"""The bytes of memory that nothing has been written to."""

FLOATS = ("f64", "f32", "f16", "bf16")
_NOISE: ContextVar[np.random.Generator | None] = ContextVar("noise", default=None)
_MANTISSA = 53
"""Bits that float64 holds of an integer."""


class UnknownElement(Exception):
    """An element type that nothing here computes with."""


def stored_dtype(element: ir.Type | str) -> np.dtype:
    """The dtype in which elements of an MLIR type are stored; raises UnknownElement."""
    try:
        return STORED[str(element)]
    except KeyError:
        known = ", ".join(STORED)
        raise UnknownElement(f"has elements of {element}; accepted are {known}") from None


def garbage(shape: Sequence[int], element: ir.Type | str) -> np.ndarray:
    """A new array of contents that show if they are read."""
    dtype = stored_dtype(element)
    if dtype == np.bool_:
        return np.ones(shape, dtype)
    count = math.prod(shape) * dtype.itemsize
    return np.full(count, GARBAGE, np.uint8).view(dtype).reshape(shape)


def stored(array: np.ndarray, element: ir.Type | str) -> np.ndarray:
    """Stored elements as they are."""
    return array


def widen(array: np.ndarray, element: ir.Type | str) -> np.ndarray:
    """Stored elements as numbers to compute with: bf16 as float32, others as they are."""
    if str(element) != "bf16":
        return array
    return (np.asarray(array, np.uint32) << np.uint32(16)).view(np.float32)


def exact(array: np.ndarray, element: ir.Type | str) -> np.ndarray:
    """Stored elements as numbers to compute with: floats as float64, others as they are."""
    wide = widen(array, element)
    with np.errstate(invalid="ignore"):  # a signalling NaN
        return wide.astype(np.float64) if wide.dtype.kind == "f" else wide


def round_to(numbers: np.ndarray, element: ir.Type | str) -> np.ndarray:
    """Numbers as stored elements: rounded once to nearest even; integers wrap."""
    dtype, numbers = stored_dtype(element), np.asarray(numbers)
    with np.errstate(all="ignore"):
        if str(element) == "bf16":
            return _bfloat16_bits(numbers)
        if dtype == np.float16 and numbers.dtype.kind in "iu":
            numbers = _integers_to_odd(numbers)
        return numbers.astype(dtype, copy=False)


@contextmanager
def noisy(random: np.random.Generator) -> Iterator[None]:
    """Has operators round inexact floats to one of three neighbours: how far does that go?"""
    token = _NOISE.set(random)
    try:
        yield
    finally:
        _NOISE.reset(token)


def rounded(numbers: np.ndarray, element: ir.Type | str) -> np.ndarray:
    """What an operator gives: rounded once, or in a `noisy` context perhaps a unit beside that."""
    found, random = round_to(numbers, element), _NOISE.get()
    if random is None or str(element) not in FLOATS:
        return found
    wide = exact(found, element)
    moves = np.isfinite(wide) & (wide != 0) & (wide != numbers)
    bits = np.atleast_1d(found).view(f"i{found.dtype.itemsize}")
    steps = random.integers(-1, 2, np.shape(bits)).astype(bits.dtype)
    return (bits + steps * moves).view(found.dtype).reshape(found.shape)


def _bfloat16_bits(numbers: np.ndarray) -> np.ndarray:
    """Rounds to float32 so that ties stay to be told from what is near one, then to bfloat16."""
    if numbers.dtype.kind in "iu":
        numbers = _integers_to_odd(numbers)
    single = numbers.astype(np.float32)
    if numbers.dtype == np.float64:
        inexact = (single != numbers) & (single.view(np.uint32) & 1 == 0) & ~np.isnan(numbers)
        toward = np.where(single < numbers, np.float32(np.inf), np.float32(-np.inf))
        single = np.where(inexact, np.nextafter(single, toward), single)
    bits = single.view(np.uint32)
    rounded = bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))
    quiet_nan = bits | np.uint32(0x400000)
    return (np.where(np.isnan(single), quiet_nan, rounded) >> np.uint32(16)).astype(np.uint16)


def _integers_to_odd(numbers: np.ndarray) -> np.ndarray:
    """Integers as float64, rounded to odd, so that rounding again is as rounding once."""
    if numbers.dtype.itemsize < 8:
        return numbers.astype(np.float64)
    lost = np.array((1 << (64 - _MANTISSA)) - 1, numbers.dtype)
    inexact = np.where(numbers & lost, lost + numbers.dtype.type(1), numbers.dtype.type(0))
    return np.where(
        np.abs(numbers.astype(np.float64)) < 2.0**_MANTISSA, numbers, (numbers & ~lost) | inexact
    ).astype(np.float64)
