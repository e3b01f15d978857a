"""MLIR's bytecode, whose reader writes beyond its memory, or ends the process, at damaged bytes."""

import faulthandler
import os
import signal
import tempfile
from collections.abc import Callable
from typing import BinaryIO

from relax_mlir.bindings import ir

SECONDS = 120
"""After which the reader counts as one without end."""
_READ, _REFUSED, _FAILED = range(3)


class BytecodeError(Exception):
    """Bytecode that cannot be read; `report` is what came of `describe`, if the reader refuses."""

    def __init__(self, message: str, report: bytes = b"") -> None:
        super().__init__(message)
        self.report = report


def written_anew(data: bytes, describe: Callable[[Exception], bytes]) -> bytes:
    """Has a child process read bytecode, in the current context, and write the module again.

    Whatever the reader does to its memory stays in the child. Raises BytecodeError if the reader
    refuses the bytes, with what `describe` makes of its exception, or ends the process.
    """
    with tempfile.TemporaryFile() as result:
        child = os.fork()
        if child == 0:
            _read(data, describe, result)
        _, status = os.waitpid(child, 0)
        if os.WIFSIGNALED(status):
            end = signal.Signals(os.WTERMSIG(status)).name
            raise BytecodeError(f"the bytecode is damaged: MLIR's reader of it ends with {end}")
        result.seek(0)
        found = result.read()
    if os.WEXITSTATUS(status) != _READ:
        raise BytecodeError("the bytecode is damaged: MLIR's reader of it fails", found)
    return found


def _read(data: bytes, describe: Callable[[Exception], bytes], result: BinaryIO) -> None:
    """What the child does; never returns."""
    status = _FAILED
    try:
        faulthandler.disable()  # it would print where the parent stood
        silent = os.open(os.devnull, os.O_WRONLY)
        os.dup2(silent, 1)
        os.dup2(silent, 2)
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(SECONDS)
        try:
            ir.Module.parse(data).operation.write_bytecode(result)
            status = _READ
        except (ir.MLIRError, RuntimeError) as error:
            result.write(describe(error))
            status = _REFUSED
        result.flush()
    finally:
        os._exit(status)
