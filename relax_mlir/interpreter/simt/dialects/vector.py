"""Parts of vectors that each thread has: the first dim is that of threads."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from relax_mlir.bindings import ir, vector

from ..threads import Threads

__all__ = ["extract", "extract_strided_slice", "from_elements"]


def from_elements(frame: Threads, op: vector.FromElementsOp, *elements: Any) -> np.ndarray:
    """A vector of these elements, in row-major order."""
    count, shape = len(frame.running), ir.VectorType(op.dest.type).shape
    columns = [np.broadcast_to(x, (count,)) for x in elements]
    return np.stack(columns, 1).reshape(count, *shape)


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
