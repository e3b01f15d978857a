"""Operators on element types."""

import numpy as np

from relax_mlir.bindings import ir
from relax_mlir.interpreter.elements import exact as read
from relax_mlir.interpreter.elements import stored_dtype

__all__ = ["read", "to_integers"]


def astype(x: np.ndarray, *, dtype: ir.Type) -> np.ndarray:
    """Another type; conversion to boolean compares with 0."""
    if str(dtype) == "i1":
        return x != 0
    if x.dtype.kind == "f" and isinstance(dtype, ir.IntegerType):
        return to_integers(x, stored_dtype(dtype))
    return x


def to_integers(x: np.ndarray, target: np.dtype) -> np.ndarray:
    """Floats truncated and clamped to the range of the type; 0 for NaN."""
    limits = np.iinfo(target)
    low, beyond = float(limits.min), float(limits.max + 1)
    inside = np.where((x >= low) & (x < beyond), x, 0).astype(target)
    return np.where(x >= beyond, limits.max, np.where(x < low, limits.min, inside)).astype(target)
