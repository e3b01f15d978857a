"""Signals while a compiled function loops: their handlers run, and what they raise ends the call.

Python runs the handlers of signals between bytecodes of the main thread, which there are none of as
long as that is in a compiled function. So loops ask now and then, by a callback.
"""

import ctypes
import functools
import itertools
import threading
from collections.abc import Iterator

_raised: list[BaseException] = []
_own = threading.local()


def _answers() -> Iterator[int]:
    """Zeros, but 1 after a handler has raised an exception, which it does at a `yield`."""
    answer = 0
    while True:
        try:
            while True:
                yield answer
                answer = 0
        except GeneratorExit:
            raise
        except BaseException as error:
            _raised.append(error)
            answer = 1


# No frame is entered for an answer, where an exception would be raised outside of any `try`. If it
# is raised while another one is kept, the next generator goes on.
_ask = functools.partial(next, itertools.chain.from_iterable(iter(_answers, None)))
_ask()

POLL = ctypes.CFUNCTYPE(ctypes.c_int32)(_ask)
"""What the runtime asks; nonzero: the call is to be given up."""


def give_up(error: BaseException) -> None:
    """Keeps the exception for which a function of this thread gives up the call that made it."""
    _own.error = error


def take_raised() -> BaseException:
    """The exception for which a call of this thread was given up."""
    own = _own.__dict__.pop("error", None)
    if own is not None:
        return own
    return _raised.pop() if _raised else KeyboardInterrupt()
