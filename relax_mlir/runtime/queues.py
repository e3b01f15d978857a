"""Bounded queues of the C runtime (`csrc/queue.c`) between threads of Python.

A cell of a queue has a handle, and the queue's table the object for it: C owns no objects. A thread
that waits has released Python's lock.
"""

import ctypes
import itertools
import math
import threading
import time
import weakref
from collections.abc import Callable
from typing import Any

from relax_mlir.errors import OutOfMemoryError

_OK, _BUSY, _CLOSED = 0, 4, 5  # RX_OK, RX_QUEUE_BUSY, RX_QUEUE_CLOSED
_SLICE, _LONG = 0.05, 3600.0
"""Seconds that a thread sleeps: handlers of signals that come just before run after a slice."""
_ABSENT = object()


class Closed(Exception):
    """A queue takes no item any more, or has none left."""


class Busy(Exception):
    """A queue was full, or empty, for as long as a thread would wait."""


class Queue:
    """Items in their order, at most `depth` of them; any threads push and pop."""

    def __init__(self, library: ctypes.CDLL, depth: int) -> None:
        """Makes one of the runtime of a compiled module, for a depth of 1 or more.

        Raises OutOfMemoryError if there is no memory for as many items.
        """
        _declare(library)
        # ctypes would take the low bits of a greater integer.
        address = library.rx_queue_new(min(depth, 2**63 - 1))
        if not address:
            raise OutOfMemoryError(f"out of memory: a queue of {depth} items")
        # Not freed at exit: daemon threads may wait for it then.
        weakref.finalize(self, library.rx_queue_free, address).atexit = False
        self._address = ctypes.c_void_p(address)
        self._push, self._pop = library.rx_queue_push, library.rx_queue_pop
        self._close = library.rx_queue_close
        self._items: dict[int, Any] = {}
        self._handles = itertools.count()
        self._threads = threading.local()

    def __len__(self) -> int:
        """Items that are pushed, or wait for space, and are not popped."""
        return len(self._items)

    def push(self, item: Any, timeout: float | None = None) -> None:
        """Waits for space, for at most so many seconds; None: for ever, and for no handlers.

        Raises Busy, or Closed; then, as if a handler of a signal raises, nothing is pushed.
        """
        handle = next(self._handles)
        self._items[handle] = item
        try:
            _within(timeout, self._push, self._address, ctypes.c_uint64(handle))
        except BaseException:
            # If the handle was pushed before the exception of a handler, pop finds it void.
            self._items.pop(handle, None)
            raise

    def pop(self, timeout: float | None = None) -> Any:
        """Waits for an item, for at most so many seconds; None: for ever, and for no handlers.

        Raises Busy, or Closed.
        """
        try:
            handle, reference = self._threads.room
        except AttributeError:
            handle = ctypes.c_uint64()
            self._threads.room = handle, (reference := ctypes.byref(handle))
        while True:
            _within(timeout, self._pop, self._address, reference)
            item = self._items.pop(handle.value, _ABSENT)
            if item is not _ABSENT:
                return item

    def close(self) -> None:
        """Refuses further items; pops get what is in the queue, and then Closed."""
        self._close(self._address)


def _within(
    timeout: float | None, function: Callable[..., int], address: ctypes.c_void_p, item: Any
) -> None:
    """Pushes or pops, in slices that let handlers run; raises Busy or Closed."""
    end = math.inf if timeout is None else time.monotonic() + timeout
    left = _LONG if timeout is None else min(_SLICE, timeout)
    while True:
        limit = ctypes.c_int64(int(1e9 * left) if left > 0 else 0)
        status = function(address, item, limit)
        if status == _OK:
            return
        if status == _CLOSED:
            raise Closed
        now = time.monotonic()
        if not now < end:
            raise Busy
        left = min(left, end - now)


def _declare(library: ctypes.CDLL) -> None:
    library.rx_queue_new.restype = ctypes.c_void_p
    library.rx_queue_new.argtypes = (ctypes.c_int64,)
    library.rx_queue_free.restype, library.rx_queue_free.argtypes = None, (ctypes.c_void_p,)
    library.rx_queue_close.restype = None
