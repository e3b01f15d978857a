"""Operators on the bits of elements."""

from collections.abc import Sequence

import numpy as np

from relax_mlir.bindings import ir
from relax_mlir.interpreter.elements import stored as read
from relax_mlir.interpreter.elements import stored_dtype

__all__ = ["read"]

_WORD = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)


def bitcast(x: np.ndarray, *, dtype: ir.Type) -> np.ndarray:
    """The bytes of each element as one of another type."""
    return np.ascontiguousarray(x).view(stored_dtype(dtype)).reshape(x.shape)


def philox(state: np.ndarray, *, blocks: Sequence[int]) -> list[np.ndarray]:
    """Ten rounds on counters of four words; the two upper ones are 0 at first."""
    key, start = np.asarray(state).view(np.uint64)
    counters = np.arange(*blocks, dtype=np.uint64) + start
    a, b = counters & _WORD, counters >> _HALF
    c = d = np.zeros_like(a)
    low, high = key & _WORD, key >> _HALF
    with np.errstate(over="ignore"):
        for _ in range(10):
            left, right = a * np.uint64(0xD2511F53), c * np.uint64(0xCD9E8D57)
            a, c = (right >> _HALF) ^ b ^ low, (left >> _HALF) ^ d ^ high
            b, d = right & _WORD, left & _WORD
            low = (low + np.uint64(0x9E3779B9)) & _WORD
            high = (high + np.uint64(0xBB67AE85)) & _WORD
    return [word.astype(np.uint32).view(np.int32) for word in (a, b, c, d)]
