"""Control flow of threads: each part runs on the threads that take it."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from relax_mlir.bindings import ir, nvvm, scf
from relax_mlir.rewriting import walk_ops

from ..branches import Branches
from ..threads import Threads, merged

__all__ = ["for_", "if_", "while_"]


def if_(frame: Threads, op: scf.IfOp, condition: Any) -> list[Any]:
    """Runs each of two regions on the threads that take it."""
    taken = np.broadcast_to(condition, frame.running.shape)
    results: list[Any] = [None] * len(op.operation.results)
    if frame.branches is None and taken.any() and not taken.all() and _may_wait(op):
        return _run_apart(frame, op, taken)
    for region, chosen in zip(op.operation.regions, (taken, ~taken), strict=True):
        if chosen.any() and len(region.blocks):
            made = frame.run_some(chosen, region.blocks[0])
            results = _filled(results, chosen, made)
    return results


def _may_wait(op: scf.IfOp) -> bool:
    """Whether there are two regions, and threads of one wait for what those of the other do."""
    first, second = (region.blocks for region in op.operation.regions)
    return bool(len(first) and len(second) and walk_ops(op, nvvm.MBarrierTryWaitOp))


def _run_apart(frame: Threads, op: scf.IfOp, taken: np.ndarray) -> list[Any]:
    """Runs both regions at once."""
    branches = Branches(frame.barriers)

    def body(region: ir.Region, chosen: np.ndarray) -> list[Any]:
        with op.operation.context:
            return frame.apart(chosen, branches).run(region.blocks[0])

    sides = list(zip(op.operation.regions, (taken, ~taken), strict=True))
    made = branches.run([partial(body, *side) for side in sides])
    frame._access = None  # threads have met others since
    results: list[Any] = [None] * len(op.operation.results)
    for (_, chosen), values in zip(sides, made, strict=True):
        results = _filled(results, chosen, values)
    return results


def for_(frame: Threads, op: scf.ForOp, lower: Any, upper: Any, step: Any, *carried: Any) -> Any:
    """Runs the body for lower, lower + step, ... below upper, of each thread."""
    block, values = op.operation.regions[0].blocks[0], list(carried)
    if "unsignedCmp" in op.operation.attributes:
        raise ValueError("compares unsigned integers, which is not known of threads")
    if np.any(np.asarray(step) <= 0):
        raise ValueError("has a step that is not positive")
    index = lower
    while True:
        runs = np.broadcast_to(np.less(index, upper), frame.running.shape)
        if not runs.any():
            return values
        made = frame.run_some(runs, block, [index, *values])
        values = _filled(values, runs, made)
        index = index + step


def while_(frame: Threads, op: scf.WhileOp, *carried: Any) -> list[Any]:
    """Runs the second region while the condition of the first holds, of each thread."""
    before, after = (region.blocks[0] for region in op.operation.regions)
    runs = np.ones(frame.running.shape, np.bool_)
    values, results = list(carried), [None] * len(op.operation.results)
    while True:
        condition, *made = frame.run_some(runs, before, values)
        results = _filled(results, runs, made)
        goes_on = np.zeros_like(runs)
        goes_on[runs] = condition
        if not goes_on.any():
            return results
        made = frame.run_some(goes_on, after, results)
        values, runs = _filled(values, goes_on, made), goes_on


def _filled(old: Sequence[Any], chosen: np.ndarray, new: Sequence[Any]) -> list[Any]:
    """The values of all threads: new ones of those that are chosen."""
    return [merged(x, chosen, y) for x, y in zip(old, new, strict=True)]
