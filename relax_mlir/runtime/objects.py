"""Objects of the host program, which compiled code passes on as handles.

A handle is an integer that no other object of the process has had. It stands for its object during
one call of an exported function, which owns the objects that are passed to it and made in it: they
are released when the call is over, however it ends, unless the caller gets them as results.
"""

import itertools
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np

from relax_mlir.errors import ExecutionError

KIND = "host_object"
"""The kind of arguments and results that are objects."""

_handles = itertools.count(1)
_calls = threading.local()


class Objects:
    """The objects of a call: those passed to it, which may be exchanged, and those made in it."""

    def __init__(self, passed: Mapping[int, Any]) -> None:
        self._passed = passed
        self._live = dict(passed)

    def add(self, value: Any) -> int:
        """A handle for an object."""
        handle = new_handle()
        self._live[handle] = value
        return handle

    def get(self, handle: int) -> Any:
        """The object of a handle; raises ExecutionError if the call has none of it."""
        for known in (self._live, self._passed):
            if handle in known:
                return known[handle]
        raise ExecutionError(f"the call has no object of the handle {handle}")


def new_handle() -> int:
    """A handle that nothing else has or had."""
    return next(_handles)


def described(handle: int) -> np.ndarray:
    """What compiled code takes in place of an object."""
    return np.array(handle, np.int64)


def objects() -> Objects:
    """Those of the innermost call of this thread; raises ExecutionError outside of any."""
    innermost = getattr(_calls, "innermost", None)
    if innermost is None:
        raise ExecutionError("objects are passed only by calls from Python")
    return innermost


@contextmanager
def holding(live: Objects) -> Iterator[Objects]:
    """Around a call, in the thread that makes it: these are its objects."""
    outer = getattr(_calls, "innermost", None)
    _calls.innermost = live
    try:
        yield live
    finally:
        _calls.innermost = outer
