"""Shapes as values: tuples of integers."""

from collections.abc import Sequence

import numpy as np

from relax_mlir.interpreter.elements import stored as read

__all__ = ["read"]


def shape_of(x: np.ndarray) -> tuple[int, ...]:
    """The dims of a tensor."""
    return x.shape


def tensor_to_shape(x: np.ndarray) -> tuple[int, ...]:
    """The elements of a tensor."""
    if np.any(x < 0):
        raise ValueError("has a negative dim")
    return tuple(map(int, x))


def make_shape(*, dims: Sequence[int]) -> tuple[int, ...]:
    """A shape of evaluated expressions."""
    return tuple(dims)
