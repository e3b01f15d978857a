"""Memory as threads access it."""

from typing import Any

from relax_mlir.bindings import ir

from .threads import Threads

__all__ = ["load", "store"]


def load(frame: Threads, op: ir.OpView, buffer: Any, *indices: Any) -> Any:
    """The element of each thread."""
    return buffer.load(indices, frame.access)


def store(frame: Threads, op: ir.OpView, value: Any, buffer: Any, *indices: Any) -> list[Any]:
    """Writes an element of each thread."""
    buffer.store(value, indices, frame.access)
    return []
