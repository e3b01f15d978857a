"""Arrays that lie one behind the other, each from a cache line on: in memory and in files alike."""

from collections.abc import Sequence
from math import prod

import numpy as np

ELEMENTS: dict[str, np.dtype] = {
    "f32": np.dtype(np.float32),
    "f16": np.dtype(np.float16),
    "bf16": np.dtype(np.uint16),  # its bits: NumPy has no such type
    "i8": np.dtype(np.int8),
}
"""Element types of parameters, by their names in the graph."""
ALIGNMENT = 64  # bytes: a cache line, and the widest vector

Kind = tuple[tuple[int, ...], np.dtype]
"""Shape and element type of an array."""


def room_for(kinds: Sequence[Kind]) -> int:
    """Bytes that arrays of these kinds take, with the gaps between them."""
    return sum(_room(kind) for kind in kinds)


def _room(kind: Kind) -> int:
    shape, dtype = kind
    return -(-dtype.itemsize * prod(shape) // ALIGNMENT) * ALIGNMENT


def placed(memory: np.ndarray, kinds: Sequence[Kind]) -> list[np.ndarray]:
    """Views of `memory`, bytes that begin at a cache line, as arrays of these kinds."""
    arrays, begin = [], 0
    for shape, dtype in kinds:
        size = dtype.itemsize * prod(shape)
        arrays.append(memory[begin : begin + size].view(dtype).reshape(shape))
        begin += _room((shape, dtype))
    return arrays


def aligned_arrays(kinds: Sequence[Kind], what: str = "arrays") -> list[np.ndarray]:
    """New arrays of these kinds in one allocation; their values are undefined.

    One large allocation can be backed by huge pages, which saves address translations.

    Raises MemoryError, which says how many bytes `what` needs.
    """
    size = room_for(kinds)
    try:
        memory = np.empty(size + ALIGNMENT, np.uint8)
    except MemoryError:
        raise MemoryError(f"{what} of {size} bytes") from None
    return placed(memory[-memory.ctypes.data % ALIGNMENT :], kinds)


def as_bytes(arrays: Sequence[np.ndarray]) -> list[memoryview]:
    """The bytes that `placed` reads the arrays from, in pieces."""
    pieces = []
    for array in arrays:
        pieces.append(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
        pieces.append(memoryview(bytes(_room((array.shape, array.dtype)) - array.nbytes)))
    return pieces
