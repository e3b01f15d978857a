"""What callers hand over besides arrays: how many there are, buffers, numbers of threads."""

import operator
from typing import Any

from relax_mlir.errors import ExecutionError, UsageError
from relax_mlir.runtime.interface import MAX_THREADS


def thread_count(threads: object) -> int:
    """The threads of a call; raises UsageError for what is no integer, or negative."""
    return min(natural("threads", threads), MAX_THREADS)


def natural(name: str, number: object) -> int:
    """An integer of 0 or more; raises UsageError, which names it, for anything else."""
    if type(number) is int and number >= 0:
        return number
    if isinstance(number, bool) or not hasattr(number, "__index__"):
        raise UsageError(f"{name} is {number!r}; expects an integer of 0 or more")
    found = operator.index(number)
    if found < 0:
        raise UsageError(f"{name} is {found}; expects an integer of 0 or more")
    return found


def buffers_of(results: object, number: int) -> tuple[Any, ...]:
    """A buffer or None for each result; raises ExecutionError for what is no list of them."""
    if results is None:
        return (None,) * number
    if not isinstance(results, list | tuple):
        kind = type(results).__name__
        raise ExecutionError(
            f"results is of type {kind}; expects a list: a buffer or None for each"
        )
    return tuple(results)


def check_number(function: str, what: str, got: int, want: int) -> None:
    """Raises ExecutionError for a wrong number of arguments or results."""
    if got != want:
        plural = "" if want == 1 else "s"
        raise ExecutionError(f"'{function}' has {want} {what}{plural}, but got {got}")
