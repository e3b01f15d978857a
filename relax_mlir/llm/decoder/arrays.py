"""Consecutive arrays, each aligned to a cache line, in memory or in a file."""

from collections.abc import Sequence
from math import prod

import numpy as np

ELEMENTS: dict[str, np.dtype] = {
    "f32": np.dtype(np.float32),
    "f16": np.dtype(np.float16),
    "bf16": np.dtype(np.uint16),  # the bits: NumPy has no bfloat16
    "i8": np.dtype(np.int8),
}
"""Element types of parameters, by their names in the graph."""
ALIGNMENT = 64  # bytes: a cache line, and the widest vector

Kind = tuple[tuple[int, ...], np.dtype]
"""Shape and element type of an array."""


def total_bytes(kinds: Sequence[Kind]) -> int:
    """The size of arrays of these kinds, padding included."""
    return sum(_bytes(kind) for kind in kinds)


def _bytes(kind: Kind) -> int:
    shape, dtype = kind
    return -(-dtype.itemsize * prod(shape) // ALIGNMENT) * ALIGNMENT


def views_of(memory: np.ndarray, kinds: Sequence[Kind]) -> list[np.ndarray]:
    """Views of `memory`, bytes that are aligned to a cache line, as arrays of these kinds."""
    arrays, begin = [], 0
    for shape, dtype in kinds:
        size = dtype.itemsize * prod(shape)
        arrays.append(memory[begin : begin + size].view(dtype).reshape(shape))
        begin += _bytes((shape, dtype))
    return arrays


def aligned_arrays(kinds: Sequence[Kind], what: str = "arrays") -> list[np.ndarray]:
    """New arrays of zeros in one allocation, whose memory is taken as it is written.

    One large allocation can be on huge pages, which saves address translations.

    Raises MemoryError, with the bytes that `what` needs.
    """
    size = total_bytes(kinds)
    try:
        memory = np.zeros(size + ALIGNMENT, np.uint8)
    except MemoryError:
        raise MemoryError(f"{what} of {size} bytes") from None
    return views_of(memory[-memory.ctypes.data % ALIGNMENT :], kinds)


def as_bytes(arrays: Sequence[np.ndarray]) -> list[memoryview]:
    """The bytes of arrays, with padding, in the layout that `views_of` reads."""
    pieces = []
    for array in arrays:
        pieces.append(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
        pieces.append(memoryview(bytes(_bytes((array.shape, array.dtype)) - array.nbytes)))
    return pieces
