"""Runs what may hang, crash or take all memory in a forked child, within bounds."""

import faulthandler
import os
import resource
import signal
import tempfile
import threading
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import BinaryIO


@dataclass(frozen=True)
class Ended:
    """How a child ended: the status that it returned, or the signal, and the bytes it wrote.

    The bytes may be anything: whoever damaged the memory of the child may have written them.
    """

    status: int | None
    signal: signal.Signals | None
    data: bytes


FAILED = 255
"""The status of a child whose function raised."""
_FORKS = threading.Lock()


def run_in_child(
    function: Callable[[BinaryIO], int],
    seconds: int,
    extra_bytes: int | None = None,
    on_start: Callable[[int], None] | None = None,
) -> Ended:
    """Calls `function` in a forked child; it writes to the file, and returns a status below 255.

    The child is ended by SIGALRM after `seconds`. It may map `extra_bytes` more than its parent
    has: MemoryError is raised in it beyond that. It inherits this process's memory as it is now,
    prints nothing, and is ended if an exception, such as KeyboardInterrupt, is raised here.
    `on_start` is called with the child's process ID, which is valid during the call.
    """
    with tempfile.TemporaryFile() as result:
        # The child takes no lock that other threads may hold; filters of warnings are global.
        with _FORKS, warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            child = os.fork()
        if child == 0:
            _run(function, result, seconds, extra_bytes)
        try:
            if on_start is not None:
                on_start(child)
            _, status = os.waitpid(child, 0)
        except BaseException:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            raise
        result.seek(0)
        data = result.read()
    if os.WIFSIGNALED(status):
        return Ended(None, signal.Signals(os.WTERMSIG(status)), data)
    return Ended(os.WEXITSTATUS(status), None, data)


def _run(
    function: Callable[[BinaryIO], int], result: BinaryIO, seconds: int, extra_bytes: int | None
) -> None:
    """What the child does; never returns."""
    status = FAILED
    try:
        faulthandler.disable()  # it would print the stack of the parent
        silent = os.open(os.devnull, os.O_WRONLY)
        os.dup2(silent, 1)
        os.dup2(silent, 2)
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends it
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(seconds)
        if extra_bytes is not None:
            _bound_memory(extra_bytes)
        status = function(result)
        result.flush()
    finally:
        os._exit(status)


def _bound_memory(extra_bytes: int) -> None:
    with open("/proc/self/statm") as sizes:
        used = int(sizes.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    limit = used + extra_bytes
    soft = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
    resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
