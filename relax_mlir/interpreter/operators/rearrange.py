"""Operators that repeat elements or put them in another order."""

from collections.abc import Sequence

import numpy as np

from relax_mlir.interpreter.elements import stored as read

__all__ = ["read"]


def flip(x: np.ndarray, *, axes: Sequence[int]) -> np.ndarray:
    """In reverse order along some axes."""
    return np.flip(x, tuple(axes))


def roll(x: np.ndarray, *, shifts: Sequence[int], axes: Sequence[int]) -> np.ndarray:
    """Moved along some axes, around the ends."""
    return np.roll(x, tuple(shifts), tuple(axes)) if axes else x


def tile(x: np.ndarray, *, repeats: Sequence[int]) -> np.ndarray:
    """The whole several times."""
    return np.tile(x, tuple(repeats))


def repeat(x: np.ndarray, *, repeats: Sequence[int], axis: int) -> np.ndarray:
    """Each element several times."""
    return np.repeat(x, repeats[0], axis)


def stack(*parts: np.ndarray, axis: int) -> np.ndarray:
    """Joined along a new axis."""
    return np.stack(parts, axis)
