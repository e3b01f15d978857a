"""Runs what comes with a model in a process of its own, within bounds of time and memory."""

import faulthandler
import os
import pickle
import resource
import signal
import tempfile
import warnings
from collections.abc import Callable
from typing import Any

from relax_mlir.errors import ModelError

SECONDS = 10
EXTRA_BYTES = 1 << 30


def call_isolated(what: str, function: Callable[[], str]) -> str:
    """The result of `function`, or its ModelError, from a child process.

    Raises ModelError if it takes more than `SECONDS`, or `EXTRA_BYTES` of memory, or ends the
    process; `what` names it.
    """
    with tempfile.TemporaryFile() as result:
        with warnings.catch_warnings():  # the child takes no lock that other threads may hold
            warnings.simplefilter("ignore", DeprecationWarning)
            child = os.fork()
        if child == 0:
            _run(function, result)
        try:
            _, status = os.waitpid(child, 0)
        except BaseException:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            raise
        if os.WIFSIGNALED(status):
            ended = os.WTERMSIG(status)
            if ended == signal.SIGALRM:
                raise ModelError(f"{what} takes more than {SECONDS} s")
            raise ModelError(f"{what} ends its process with {signal.Signals(ended).name}")
        result.seek(0)
        data = result.read()
    if os.WEXITSTATUS(status) != 0:
        raise ModelError(f"{what} takes too much memory")
    kind, value = pickle.loads(data)
    if kind == "error":
        raise ModelError(value)
    return value


def _run(function: Callable[[], str], result: Any) -> None:
    """What the child does; never returns."""
    status = 1
    try:
        faulthandler.disable()
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends it
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(SECONDS)
        with open("/proc/self/statm") as sizes:
            used = int(sizes.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
        hard = resource.getrlimit(resource.RLIMIT_AS)[1]
        limit = used + EXTRA_BYTES
        soft = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
        try:
            found = ("result", function())
        except ModelError as error:
            found = ("error", str(error))
        pickle.dump(found, result)
        result.flush()
        status = 0
    finally:
        os._exit(status)
