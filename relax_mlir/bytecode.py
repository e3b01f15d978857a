"""MLIR's bytecode, whose reader writes beyond its memory, or ends the process, at damaged bytes."""

from collections.abc import Callable
from typing import BinaryIO

from relax_mlir.bindings import ir
from relax_mlir.child_process import run_in_child

SECONDS = 120
"""After which the reader counts as one without end."""
_READ, _REFUSED = range(2)


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
