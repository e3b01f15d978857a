"""Memory as threads access it."""

from typing import Any

from relax_mlir.bindings import ir

from .threads import Threads

__all__ = ["extract_aligned_pointer_as_index", "load", "store"]


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
