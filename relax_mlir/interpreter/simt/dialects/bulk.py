"""Barriers that count bytes, and copies of boxes of tensors, which one thread begins.

Who waits for a phase that is not complete gives way to threads of other branches. If all of them
wait, copies are complete, or they would wait for ever.
"""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from relax_mlir.bindings import ir

from ..buffers import GroupBuffer
from ..shadow import Access
from ..tensor_maps import ELEMENT_BYTES, UNIT_BYTES, TensorMap
from ..threads import Threads

__all__ = [
    "cp_async_bulk_tensor_shared_cluster_global",
    "fence_mbarrier_init",
    "mbarrier_arrive",
    "mbarrier_arrive_expect_tx",
    "mbarrier_init",
    "mbarrier_try_wait",
]


def mbarrier_init(frame: Threads, op: ir.OpView, address: Any, count: Any) -> list[Any]:
    """Makes a barrier of so many arrivals."""
    for by, where, arrivals in _each(frame, address, count):
        frame.barriers.make(where, arrivals, by)
    return []


def fence_mbarrier_init(frame: Threads, op: ir.OpView) -> list[Any]:
    """Has copies see the barriers that threads made."""
    frame.barriers.publish(frame.access)
    return []


def mbarrier_arrive_expect_tx(frame: Threads, op: ir.OpView, address: Any, size: Any) -> list[Any]:
    """Arrives, and says that so many more bytes come."""
    for by, where, count in _each(frame, address, size):
        frame.barriers.arrive(where, count, by)
    return []


def mbarrier_arrive(frame: Threads, op: ir.OpView, address: Any) -> list[Any]:
    """Arrives."""
    for by, where in _each(frame, address):
        frame.barriers.arrive(where, 0, by)
    return []


def mbarrier_try_wait(frame: Threads, op: ir.OpView, address: Any, parity: Any) -> np.ndarray:
    """True: the phase is complete."""
    by, count = frame.access, len(frame.running)
    where, bits = np.broadcast_to(address, (count,)), np.broadcast_to(parity, (count,))
    keys = np.stack([by.group, where, bits], 1).astype(np.int64)
    chosen, which = np.unique(keys, axis=0, return_inverse=True)
    for i, (_, one, bit) in enumerate(chosen.tolist()):
        own = by.some(which.reshape(-1) == i)
        while not frame.barriers.is_complete(one, bit, own):
            if frame.branches is None:
                frame.barriers.go_on()
            else:
                frame.branches.give_way()
    return np.ones(count, np.bool_)


def cp_async_bulk_tensor_shared_cluster_global(
    frame: Threads, op: ir.OpView, target: Any, made: TensorMap, *operands: Any
) -> list[Any]:
    """Begins to copy a box; elements beyond the tensor are zero."""
    *begins, barrier = operands
    if frame.memory.is_written(made.memory):
        raise ValueError("copies by a tensor map what the kernel writes")
    for by, to, own, *begin in _each(frame, target, barrier, *reversed(begins)):
        offsets, inside = made.offsets(begin)
        data = np.zeros(len(offsets), np.uint16)
        data[inside] = made.memory.view(np.uint16)[offsets[inside] // ELEMENT_BYTES]
        units = made.units(to)
        access = by.repeated(len(units))
        buffer = frame.buffer_at(to)
        at = (units - buffer.address) // ELEMENT_BYTES
        buffer.begin(at, UNIT_BYTES // ELEMENT_BYTES, access)
        end = partial(_deliver, buffer, at, data.reshape(len(units), -1), access)
        frame.barriers.begin(own, made.box_bytes, by, end)
    return []


def _deliver(buffer: GroupBuffer, at: np.ndarray, data: np.ndarray, by: Access, copy: int) -> None:
    buffer.deliver(at, data.view(buffer.words.dtype), copy, by)


def _each(frame: Threads, *values: Any) -> Iterator[Any]:
    """Each running thread, with its own values."""
    by, shape = frame.access, (len(frame.running),)
    columns = [np.broadcast_to(x, shape).tolist() for x in values]
    for i, row in enumerate(zip(*columns, strict=True)):
        yield (by.some(np.array([i])), *row)
