"""Indices and barriers of threads."""

from typing import Any

import numpy as np

from relax_mlir.bindings import ir

from ..fragments import WARP, are_whole
from ..threads import Threads

__all__ = ["barrier", "block_dim", "block_id", "grid_dim", "shuffle", "thread_id"]


def barrier(frame: Threads, op: ir.OpView) -> list[Any]:
    """Has the threads of each group wait for each other."""
    frame.barrier()
    return []


def thread_id(frame: Threads, op: ir.OpView) -> Any:
    """The index of the thread in its group."""
    return index_along(frame.running % frame.per_group, frame.size, _axis(op))


def block_id(frame: Threads, op: ir.OpView) -> Any:
    """The index of the group in the grid."""
    return index_along(frame.running // frame.per_group, frame.grid, _axis(op))


def block_dim(frame: Threads, op: ir.OpView) -> int:
    """The extent of a group."""
    return frame.size[_axis(op)]


def grid_dim(frame: Threads, op: ir.OpView) -> int:
    """The extent of the grid."""
    return frame.grid[_axis(op)]


def shuffle(frame: Threads, op: ir.OpView, x: Any, offset: int, width: int) -> list[Any]:
    """The value of the lane whose index differs in the bits of the offset; of whole warps only."""
    if "xor" not in str(op.operation.attributes["mode"]):
        raise ValueError("is a shuffle that is not by exclusive or")
    count = len(frame.running)
    if not are_whole(frame.running % frame.per_group) or width != WARP:
        raise ValueError("is of warps, of which threads do not run")
    values = np.broadcast_to(x, (count,))
    return [values[np.arange(count) ^ offset], True]


def index_along(linear: np.ndarray, extents: Any, axis: int) -> Any:
    """An index of a linear index, x being innermost; one element if it is the same for all."""
    before = int(np.prod(extents[:axis]))
    index = linear // before % extents[axis]
    return int(index[0]) if (index == index[0]).all() else index


def _axis(op: ir.OpView) -> int:
    return "xyz".index(str(op.operation.attributes["dimension"])[-2])
