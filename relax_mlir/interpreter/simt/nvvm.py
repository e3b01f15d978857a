"""What threads of a warp wait for."""

from typing import Any

import numpy as np

from relax_mlir.bindings import ir

from .fragments import are_whole_warps
from .threads import Threads

__all__ = ["bar_warp_sync", "cp_async_commit_group", "cp_async_wait_group"]


def bar_warp_sync(frame: Threads, op: ir.OpView, mask: Any) -> list[Any]:
    """Nothing: threads run in lockstep; raises ValueError if some of a warp do not reach it."""
    if np.any(np.asarray(mask) != -1) or not are_whole_warps(frame.running % frame.per_group):
        raise ValueError("is a barrier that threads of a warp do not reach")
    return []


def cp_async_commit_group(frame: Threads, op: ir.OpView) -> list[Any]:
    """Makes the copies that threads began a group."""
    frame.pending.commit(frame.local)
    return []


def cp_async_wait_group(frame: Threads, op: ir.OpView) -> list[Any]:
    """Waits until at most `n` groups of copies of each thread are not complete."""
    most = ir.IntegerAttr(op.operation.attributes["n"]).value
    for copy in frame.pending.wait(frame.local, most):
        by = frame.access_of(copy.threads)
        copy.memory.complete(copy.offsets, copy.data, by)
    return []
