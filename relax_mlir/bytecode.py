"""Reads MLIR bytecode in a child process: damaged bytes corrupt memory or abort the process."""

from collections.abc import Callable
from typing import BinaryIO

from relax_mlir.bindings import ir
from relax_mlir.child_process import run_in_child

SECONDS = 120
"""The time limit of the reader, which may not terminate."""
_READ, _REFUSED = range(2)


class BytecodeError(Exception):
    """Bytecode that cannot be read; `report` is the result of `describe`, if the reader refuses."""

    def __init__(self, message: str, report: bytes = b"") -> None:
        super().__init__(message)
        self.report = report


def rewritten(data: bytes, describe: Callable[[Exception], bytes]) -> bytes:
    """Rewrites bytecode in a child process, which reads it in the current context.

    Memory corruption by the reader is confined to the child. Raises BytecodeError if the reader
    refuses the bytes, with `describe` applied to its exception, or aborts the process.
    """

    def read(result: BinaryIO) -> int:
        try:
            ir.Module.parse(data).operation.write_bytecode(result)
        except (ir.MLIRError, RuntimeError) as error:
            result.write(describe(error))
            return _REFUSED
        return _READ

    ended = run_in_child(read, SECONDS)
    if ended.signal is not None:
        end = ended.signal.name
        raise BytecodeError(f"the bytecode is damaged: MLIR's reader of it ends with {end}")
    if ended.status == _READ:
        return ended.data
    report = ended.data if ended.status == _REFUSED else b""
    raise BytecodeError("the bytecode is damaged: MLIR's reader of it fails", report)
