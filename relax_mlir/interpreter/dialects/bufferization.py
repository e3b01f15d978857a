"""Tensors of which a program says where they lie, which changes nothing of what they are."""

import numpy as np

from relax_mlir.interpreter.elements import stored as read

__all__ = ["read"]


def materialize_in_destination(x: np.ndarray, place: np.ndarray) -> np.ndarray:
    """The first tensor, in the memory of the second."""
    if x.shape != place.shape:
        raise ValueError(f"puts dims {list(x.shape)} where there are dims {list(place.shape)}")
    return x
