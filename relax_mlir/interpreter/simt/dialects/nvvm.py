"""What threads of warps and warpgroups wait for, and products of warpgroups.

A product is computed when its threads have waited for it, at the last moment that is permitted.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from relax_mlir.bindings import ir
from relax_mlir.interpreter.elements import widen

from ..fragments import WARP, are_whole
from ..threads import Threads
from ..warpgroups import ROWS, WARPGROUP, WarpgroupProduct
from .bulk import (
    cp_async_bulk_tensor_shared_cluster_global,
    fence_mbarrier_init,
    mbarrier_arrive,
    mbarrier_arrive_expect_tx,
    mbarrier_init,
    mbarrier_try_wait,
)

__all__ = [
    "bar_warp_sync",
    "barrier",
    "cp_async_bulk_tensor_shared_cluster_global",
    "cp_async_commit_group",
    "cp_async_wait_group",
    "fence_mbarrier_init",
    "fence_proxy",
    "mbarrier_arrive",
    "mbarrier_arrive_expect_tx",
    "mbarrier_init",
    "mbarrier_try_wait",
    "wgmma_commit_group_sync_aligned",
    "wgmma_fence_aligned",
    "wgmma_mma_async",
    "wgmma_wait_group_sync_aligned",
]


@dataclass(frozen=True)
class _Product:
    """A product that is not complete: its threads, what names its sides, and where sums go."""

    threads: np.ndarray
    named: np.ndarray
    element: str
    product: WarpgroupProduct
    before: np.ndarray
    after: np.ndarray


def barrier(frame: Threads, op: ir.OpView, name: int, count: int) -> list[Any]:
    """Has so many threads of each group wait for each other."""
    frame.barrier(name, count)
    return []


def bar_warp_sync(frame: Threads, op: ir.OpView, mask: Any) -> list[Any]:
    """Nothing: threads run in lockstep; raises ValueError if some of a warp do not reach it."""
    if np.any(np.asarray(mask) != -1) or not are_whole(frame.running % frame.per_group):
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


def fence_proxy(frame: Threads, op: ir.OpView) -> list[Any]:
    """Nothing: memory is always up to date here; the interpreter of PTX checks for it."""
    return []


wgmma_fence_aligned = fence_proxy


def wgmma_commit_group_sync_aligned(frame: Threads, op: ir.OpView) -> list[Any]:
    """Makes the products that threads began a group."""
    frame.products.append([])
    return []


def wgmma_mma_async(frame: Threads, op: ir.OpView, total: np.ndarray, a: Any, b: Any) -> np.ndarray:
    """Begins a product; its sums are NaN until they are there."""
    if not are_whole(frame.running % frame.per_group, WARPGROUP):
        raise ValueError("is of warpgroups, of which threads do not run")
    attributes, count = op.operation.attributes, len(frame.running)
    transposes = "col" in str(attributes["layoutA"]), "row" in str(attributes["layoutB"])
    element = str(attributes["typeA"]).partition("<")[2].strip("> ")
    product = WarpgroupProduct(total.shape[1] * WARPGROUP // ROWS, transposes)
    named = np.stack([np.broadcast_to(x, (count,)) for x in (a, b)]).astype(np.int64)
    after = np.full((count, total.shape[1]), np.nan, np.float32)
    before = np.broadcast_to(total, after.shape)
    frame.products[-1].append(_Product(frame.local, named, element, product, before, after))
    return after


def wgmma_wait_group_sync_aligned(frame: Threads, op: ir.OpView) -> list[Any]:
    """Computes the products of all but the last groups."""
    most = ir.IntegerAttr(op.operation.attributes["group"]).value
    while len(frame.products) - 1 > most:
        for each in frame.products.pop(0):
            for first in range(0, len(each.threads), WARPGROUP):
                own = slice(first, first + WARPGROUP)
                words = int(each.named[0, first]), int(each.named[1, first])
                load = _loader(frame, each.threads[first : first + 1], each.element)
                each.after[own] = each.product.compute(words, load, each.before[own])
    return []


def _loader(frame: Threads, thread: np.ndarray, element: str) -> Callable[[np.ndarray], np.ndarray]:
    """What loads elements of memory of the group of a thread, by addresses."""
    by = frame.access_of(thread)

    def load(addresses: np.ndarray) -> np.ndarray:
        buffer = frame.buffer_at(int(addresses.min()))
        index = (addresses.reshape(-1) - buffer.address) // buffer.words.itemsize
        for warp in range(0, WARPGROUP, WARP):
            buffer.note_reads([index], frame.access_of(thread + warp).repeated(index.size))
        access = by.repeated(index.size)
        return widen(buffer.load([index], access).reshape(addresses.shape), element)

    return load
