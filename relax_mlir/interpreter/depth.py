"""Functions that call themselves: the limit of nested calls, and a stack that is large enough."""

from __future__ import annotations

import contextvars
import sys
import threading
from collections.abc import Callable
from typing import TypeVar

Result = TypeVar("Result")

MOST_CALLS = 1000
"""The limit of compiled functions, `RX_MAX_DEPTH`."""
_FRAMES = 400 * MOST_CALLS
"""Python's frames, of which each nested region needs some."""
_STACK = 1 << 30

_lock = threading.Lock()
_running, _outer_limit = 0, 0


def on_large_stack(function: Callable[[], Result]) -> Result:
    """Calls the function in a thread of its own, whose stack holds the deepest recursion.

    The thread has the caller's context, which may say that results are noisy.
    """
    context = contextvars.copy_context()
    outcome: list[Result] = []
    failure: list[BaseException] = []

    def run() -> None:
        try:
            outcome.append(function())
        except BaseException as error:
            failure.append(error)

    _raise_limit()
    try:
        with _lock:
            before = threading.stack_size(_STACK)
            thread = threading.Thread(target=context.run, args=(run,), daemon=True)
            thread.start()
            threading.stack_size(before)
        thread.join()
    finally:
        _restore_limit()
    if failure:
        raise failure[0]
    return outcome[0]


def _raise_limit() -> None:
    """Raises Python's limit of recursion for as long as such functions run."""
    global _running, _outer_limit
    with _lock:
        if not _running:
            _outer_limit = sys.getrecursionlimit()
            sys.setrecursionlimit(max(_outer_limit, _FRAMES))
        _running += 1


def _restore_limit() -> None:
    global _running
    with _lock:
        _running -= 1
        if not _running:
            sys.setrecursionlimit(_outer_limit)
