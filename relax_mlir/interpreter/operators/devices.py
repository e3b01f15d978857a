"""Operators on where tensors are, which change no element."""

import numpy as np

from relax_mlir.interpreter.elements import stored as read

__all__ = ["read"]


def to_device(x: np.ndarray) -> np.ndarray:
    """Itself."""
    return x


def hint_on_device(x: np.ndarray) -> np.ndarray:
    """Itself."""
    return x
