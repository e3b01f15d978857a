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


def shuffle(frame: Threads, op: ir.OpView, x: Any, offset: Any, width: int) -> list[Any]:
    """The value of another lane of the first `width` ones, which have to run, and no others."""
    mode = str(op.operation.attributes["mode"]).removeprefix("#gpu<shuffle_mode ").rstrip(">")
    if mode not in ("xor", "idx"):
        raise ValueError(f"is a shuffle by '{mode}'; interpreted are xor and idx")
    threads = frame.running % frame.per_group
    if not are_whole(threads, width):
        raise ValueError("is of warps, of which other threads run")
    lane = threads % WARP
    other = np.broadcast_to(lane ^ offset if mode == "xor" else offset, lane.shape)
    if ((other < 0) | (other >= width)).any():
        raise ValueError(f"reads a lane that is not one of {width}")
    values = np.broadcast_to(x, (len(lane),))
    return [values[np.arange(len(lane)) - lane + other], True]


def index_along(linear: np.ndarray, extents: Any, axis: int) -> Any:
    """An index of a linear index, x being innermost; one element if it is the same for all."""
    before = int(np.prod(extents[:axis]))
    index = linear // before % extents[axis]
    return int(index[0]) if (index == index[0]).all() else index


def _axis(op: ir.OpView) -> int:
    return "xyz".index(str(op.operation.attributes["dimension"])[-2])
