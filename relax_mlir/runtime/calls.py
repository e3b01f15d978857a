"""Checks of a call's arguments other than arrays: counts, buffers, thread counts."""

import operator
from typing import Any

from relax_mlir.errors import ExecutionError, UsageError
from relax_mlir.runtime.interface import MAX_THREADS


def thread_count(threads: object) -> int:
    """The threads of a call; raises UsageError unless it is an integer of 0 or more."""
    return min(natural("threads", threads), MAX_THREADS)


def natural(name: str, value: object) -> int:
    """An integer of 0 or more; raises UsageError, which names it, for anything else."""
    if type(value) is int and value >= 0:
        return value
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise UsageError(f"{name} is {value!r}; expects an integer of 0 or more")
    integer = operator.index(value)
    if integer < 0:
        raise UsageError(f"{name} is {integer}; expects an integer of 0 or more")
    return integer


def buffers_of(results: object, count: int) -> tuple[Any, ...]:
    """A buffer or None for each result; raises ExecutionError for anything but a list of them."""
    if results is None:
        return (None,) * count
    if not isinstance(results, list | tuple):
        kind = type(results).__name__
        raise ExecutionError(
            f"results is of type {kind}; expects a list: a buffer or None for each"
        )
    return tuple(results)


def sequence_of(results: Any, count: int) -> tuple[Any, ...]:
    """What a call returned, as a tuple of its results; a shape is a tuple itself."""
    return () if not count else (results,) if count == 1 else results


def check_count(function: str, what: str, got: int, want: int) -> None:
    """Raises ExecutionError for a wrong count of arguments or results."""
    if got != want:
        plural = "" if want == 1 else "s"
        raise ExecutionError(f"'{function}' has {want} {what}{plural}, but got {got}")
