"""What instances of dataflow nodes ask about the grids around them."""

from __future__ import annotations

from typing import Any

import numpy as np

from relax_mlir.dialects.tir import GlobalIdOp, GlobalSizeOp, GridSizeOp, NodeIdOp
from relax_mlir.interpreter.elements import stored as read
from relax_mlir.interpreter.frame import Frame

__all__ = ["read"]


def node_id(frame: Frame, op: NodeIdOp) -> int:
    """The index of the instance, or of one around it."""
    level, dim = op.position
    return frame.grids[level].ids[dim]


def grid_size(frame: Frame, op: GridSizeOp) -> int:
    """The extent of a dim of a grid."""
    level, dim = op.position
    return frame.grids[level].extents[dim]


def global_id(frame: Frame, op: GlobalIdOp) -> int:
    """The index in what tiles cover."""
    level, dim = op.position
    own, tile = frame.grids[level], frame.grids[level + 1]
    return tile.ids[dim] * own.extents[dim] + own.ids[dim]


def global_size(frame: Frame, op: GlobalSizeOp) -> int:
    """The extent that tiles cover."""
    level, dim = op.position
    return frame.grids[level + 1].covered[dim]


_COMBINE = {
    "add": np.add,
    "sub": np.subtract,
    "min": np.minimum,
    "max": np.maximum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}


def atomic(value: Any, x: np.ndarray, *indices: int, kind: str) -> np.ndarray:
    """The tensor with one element updated, if the index is inside."""
    if not all(0 <= i < extent for i, extent in zip(indices, x.shape)):
        return x
    result = np.array(x)
    flat = result.reshape(-1)
    at = int(np.ravel_multi_index(indices, x.shape)) if indices else 0
    one = flat[at : at + 1]  # sums of arrays wrap
    one[:] = value if kind == "exchange" else _COMBINE[kind](one, one.dtype.type(value))
    return result


def barrier(before: np.ndarray) -> np.ndarray:
    """What `instances.py` has made of all instances by then; it runs the phases of a leaf."""
    return before
