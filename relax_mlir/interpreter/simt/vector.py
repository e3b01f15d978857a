"""Parts of vectors that each thread has: the first dim is that of threads."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from relax_mlir.bindings import ir

__all__ = ["extract", "extract_strided_slice"]


def extract(x: np.ndarray, *, static_position: Sequence[int]) -> Any:
    """An element, or the vectors at a position."""
    position: Any = (slice(None), *static_position)
    return x[position]


def extract_strided_slice(
    x: np.ndarray, *, offsets: ir.ArrayAttr, sizes: ir.ArrayAttr
) -> np.ndarray:
    """Elements next to each other along the first dims."""
    pairs = zip(offsets, sizes, strict=True)
    parts: Any = (slice(None), *(slice(a.value, a.value + n.value) for a, n in pairs))
    return x[parts]
