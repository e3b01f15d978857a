"""Runs what others write, such as chat templates, within limits of time and memory."""

from collections.abc import Callable
from signal import SIGALRM
from typing import BinaryIO

from relax_mlir.child_process import run_in_child
from relax_mlir.errors import ModelError

SECONDS = 10
EXTRA_BYTES = 1 << 30
_DONE, _REFUSED = range(2)


def call_isolated(what: str, function: Callable[[], str], seconds: int | None = None) -> str:
    """The result of `function`, or its ModelError, from a child process.

    Raises ModelError if it takes more than `seconds`, by default `SECONDS`, or `EXTRA_BYTES` of
    memory, or kills the process; `what` names it.
    """
    seconds = SECONDS if seconds is None else seconds

    def run(result: BinaryIO) -> int:
        status = _DONE
        try:
            text = function()
        except ModelError as error:
            status, text = _REFUSED, str(error)
        result.write(text.encode("utf-8", "surrogatepass"))
        return status

    ended = run_in_child(run, seconds, EXTRA_BYTES)
    if ended.signal == SIGALRM:
        raise ModelError(f"{what} takes more than {seconds} s")
    if ended.signal is not None:
        raise ModelError(f"{what} ends its process with {ended.signal.name}")
    if ended.status not in (_DONE, _REFUSED):
        raise ModelError(f"{what} takes too much memory")
    text = ended.data.decode("utf-8", "surrogatepass")
    if ended.status == _REFUSED:
        raise ModelError(text)
    return text
