"""Memory as threads access it."""

from typing import Any

import numpy as np

from relax_mlir.bindings import arith, ir

from ..threads import Threads

__all__ = ["atomic_rmw", "extract_aligned_pointer_as_index", "load", "store"]


_KIND = arith.AtomicRMWKind
COMBINE: dict[int, tuple[np.ufunc, str]] = {
    int(kind): combine
    for kind, combine in (
        (_KIND.addi, (np.add, "i")),
        (_KIND.maxs, (np.maximum, "i")),
        (_KIND.maxu, (np.maximum, "u")),
        (_KIND.mins, (np.minimum, "i")),
        (_KIND.minu, (np.minimum, "u")),
        (_KIND.andi, (np.bitwise_and, "i")),
        (_KIND.ori, (np.bitwise_or, "i")),
    )
}
"""What atomic updates compute, of integers with a sign or without; the order does not matter."""


def load(frame: Threads, op: ir.OpView, buffer: Any, *indices: Any) -> Any:
    """The element of each thread."""
    return buffer.load(indices, frame.access)


def extract_aligned_pointer_as_index(frame: Threads, op: ir.OpView, buffer: Any) -> int:
    """The address of memory of a group."""
    return buffer.address


def store(frame: Threads, op: ir.OpView, value: Any, buffer: Any, *indices: Any) -> list[Any]:
    """Writes an element of each thread."""
    buffer.store(value, indices, frame.access)
    return []


def atomic_rmw(frame: Threads, op: ir.OpView, value: Any, buffer: Any, *indices: Any) -> list[Any]:
    """Updates an element of each thread; what was there is not known."""
    if any(True for _ in op.result.uses):
        raise ValueError("uses what an atomic update replaced, which depends on their order")
    kind = ir.IntegerAttr(op.operation.attributes["kind"]).value
    if kind not in COMBINE:
        raise ValueError("is an update whose result depends on the order")
    buffer.update(COMBINE[kind], value, indices, frame.access)
    return [None]
