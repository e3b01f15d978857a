"""Element types in NumPy: storage, and conversions that round once.

NumPy has no bfloat16: its bits are stored as uint16, and computations use float32, which represents
all its values. So it is with floats of 8 bits.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np

from relax_mlir.bindings import ir

from .small_floats import FORMATS, small_codes, small_values

STORED: dict[str, np.dtype] = {
    "f64": np.dtype(np.float64),
    "f32": np.dtype(np.float32),
    "f16": np.dtype(np.float16),
    "bf16": np.dtype(np.uint16),
    **dict.fromkeys(FORMATS, np.dtype(np.uint8)),
    "i1": np.dtype(np.bool_),
    "index": np.dtype(np.int64),
    **{f"{sign}{bits}": np.dtype(f"int{bits}") for sign in ("i", "si") for bits in (8, 16, 32, 64)},
    **{f"ui{bits}": np.dtype(f"uint{bits}") for bits in (8, 16, 32, 64)},
    # The bits of masks as one Python integer.
    **{f"i{bits}": np.dtype(object) for bits in (2, 4, 128, 256, 512)},
}
"""The dtype in which each element type is stored."""

Read = Callable[[Any, str], Any]
"""A function that reads operands of an element type: `stored`, `widen` or `exact`."""

GARBAGE = 0x55
"""The bytes of uninitialised memory."""

PACKED = ("bf16", *FORMATS)
"""Floats that are stored as bits."""
FLOATS = ("f64", "f32", "f16", "bf16")
_NOISE: ContextVar[np.random.Generator | None] = ContextVar("noise", default=None)
_MANTISSA = 53
"""The bits of an integer that float64 represents."""


class UnknownElement(Exception):
    """An element type that is not supported here."""


def stored_dtype(element: ir.Type | str) -> np.dtype:
    """The dtype in which elements of an MLIR type are stored; raises UnknownElement."""
    try:
        return STORED[str(element)]
    except KeyError:
        known = ", ".join(STORED)
        raise UnknownElement(f"has elements of {element}; accepted are {known}") from None


def garbage(shape: Sequence[int], element: ir.Type | str) -> np.ndarray:
    """A new array of garbage, which shows if it is read."""
    dtype = stored_dtype(element)
    if dtype == np.bool_:
        return np.ones(shape, dtype)
    count = math.prod(shape) * dtype.itemsize
    return np.full(count, GARBAGE, np.uint8).view(dtype).reshape(shape)


def stored(array: np.ndarray, element: ir.Type | str) -> np.ndarray:
    """Stored elements, unchanged."""
    return array


def widen(array: np.ndarray, element: ir.Type | str) -> np.ndarray:
    """Stored elements for computation: bits of floats as float32, others unchanged."""
    if str(element) in FORMATS:
        return small_values(str(element))[array]
    if str(element) != "bf16":
        return array
    return (np.asarray(array, np.uint32) << np.uint32(16)).view(np.float32)


def exact(array: np.ndarray, element: ir.Type | str) -> np.ndarray:
    """Stored elements for computation: floats as float64, others unchanged."""
    values = widen(array, element)
    with np.errstate(invalid="ignore"):  # a signalling NaN
        return values.astype(np.float64) if values.dtype.kind == "f" else values


def round_to(values: np.ndarray, element: ir.Type | str) -> np.ndarray:
    """Rounds values to stored elements, once, to nearest even; integers wrap."""
    dtype, values = stored_dtype(element), np.asarray(values)
    with np.errstate(all="ignore"):
        if str(element) == "bf16":
            return _bfloat16_bits(values)
        if str(element) in FORMATS:
            return small_codes(values, str(element))
        if dtype == np.float16 and values.dtype.kind in "iu":
            values = _integers_to_odd(values)
        return values.astype(dtype, copy=False)


@contextmanager
def noisy(random: np.random.Generator) -> Iterator[None]:
    """Makes operators round inexact floats to one of three neighbours, to measure error growth."""
    token = _NOISE.set(random)
    try:
        yield
    finally:
        _NOISE.reset(token)


def is_noisy() -> bool:
    """Whether results differ from call to call: in a `noisy` context."""
    return _NOISE.get() is not None


def inexact(values: np.ndarray, element: str) -> np.ndarray:
    """A sum or mean on the way to a result: in a `noisy` context 4 ulps off, as those of kernels.

    Kernels compute in f32, or in f64 for elements of f64.
    """
    random = _NOISE.get()
    if random is None or element not in FLOATS:
        return values
    ulp = np.spacing(values.astype(np.float64 if element == "f64" else np.float32))
    return values + random.choice([-4, 4], np.shape(values)) * np.abs(ulp)


def accumulated(
    total: np.ndarray, element: str, count: np.floating, size: Callable[[], np.ndarray]
) -> np.ndarray:
    """A result of so many steps: in a `noisy` context off as far as kernels round on the way.

    They round to f32, or to f64, after each step, to which results have about `size`. One that an
    element type of fewer bits than f64 has may be exact.
    """
    random = _NOISE.get()
    if random is None or element not in FLOATS:
        return total
    double = element == "f64"
    ulp = np.finfo(np.float64 if double else np.float32).eps / 2
    with np.errstate(invalid="ignore", over="ignore"):
        way = random.choice([-1, 1], np.shape(total)) * ulp * np.sqrt(count) * size()
        moves = np.isfinite(total) & np.isfinite(way)
        moves &= double | (exact(round_to(total, element), element) != total)
        return np.where(moves, total + way, total)


def rounded(unrounded: np.ndarray, element: ir.Type | str) -> np.ndarray:
    """The result of an operator: rounded once, or in a `noisy` context up to an ulp off."""
    result, random = round_to(unrounded, element), _NOISE.get()
    if random is None or str(element) not in FLOATS:
        return result
    values = exact(result, element)
    moves = np.isfinite(values) & (values != 0) & (values != unrounded)
    bits = np.atleast_1d(result).view(f"i{result.dtype.itemsize}")
    steps = random.integers(-1, 2, np.shape(bits)).astype(bits.dtype)
    return (bits + steps * moves).view(result.dtype).reshape(result.shape)


def _bfloat16_bits(values: np.ndarray) -> np.ndarray:
    """Rounds to float32 so that no near-tie becomes a tie, then to bfloat16."""
    if values.dtype.kind in "iu":
        values = _integers_to_odd(values)
    single = values.astype(np.float32)
    if values.dtype == np.float64:
        inexact = (single != values) & (single.view(np.uint32) & 1 == 0) & ~np.isnan(values)
        toward = np.where(single < values, np.float32(np.inf), np.float32(-np.inf))
        single = np.where(inexact, np.nextafter(single, toward), single)
    bits = single.view(np.uint32)
    rounded = bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))
    quiet_nan = bits | np.uint32(0x400000)
    return (np.where(np.isnan(single), quiet_nan, rounded) >> np.uint32(16)).astype(np.uint16)


def _integers_to_odd(integers: np.ndarray) -> np.ndarray:
    """Integers as float64, rounded to odd, so that a second rounding is exact."""
    if integers.dtype.itemsize < 8:
        return integers.astype(np.float64)
    lost = np.array((1 << (64 - _MANTISSA)) - 1, integers.dtype)
    inexact = np.where(integers & lost, lost + integers.dtype.type(1), integers.dtype.type(0))
    return np.where(
        np.abs(integers.astype(np.float64)) < 2.0**_MANTISSA, integers, (integers & ~lost) | inexact
    ).astype(np.float64)
