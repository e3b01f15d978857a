"""Operators that accumulate along an axis."""

from collections.abc import Callable

import numpy as np

from relax_mlir.interpreter.elements import exact as read

__all__ = ["read"]


def cumsum(x: np.ndarray, *, axis: int, exclusive: bool, reverse: bool) -> np.ndarray:
    """The sum up to each element."""
    return _scan(np.cumsum, 0, x, axis, exclusive, reverse)


def cumprod(x: np.ndarray, *, axis: int, exclusive: bool, reverse: bool) -> np.ndarray:
    """The product up to each element."""
    return _scan(np.cumprod, 1, x, axis, exclusive, reverse)


def _scan(
    scan: Callable[..., np.ndarray],
    start: int,
    x: np.ndarray,
    axis: int,
    exclusive: bool,
    reverse: bool,
) -> np.ndarray:
    x = np.flip(x, axis) if reverse else x
    with np.errstate(all="ignore"):
        found = scan(x, axis, dtype=x.dtype)
    if exclusive:
        found = np.roll(found, 1, axis)
        first: list[slice | int] = [slice(None)] * x.ndim
        first[axis] = slice(0, 1)
        found[tuple(first)] = start
    return np.flip(found, axis) if reverse else found
