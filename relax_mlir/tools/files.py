"""Input and output of command-line tools: '-' is a standard stream, writes are atomic."""

import os
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

from relax_mlir.errors import UsageError

BYTECODE_MAGIC = b"ML\xefR"


def read_input(name: str) -> str | bytes:
    """Reads MLIR text, or bytecode as bytes, from a file or standard input.

    Raises UsageError if the file cannot be read or is neither.
    """
    if name == "-" and sys.stdin is None:
        raise UsageError("cannot read standard input: it is closed")
    try:
        data = sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
    except OSError as error:
        raise UsageError(f"cannot read '{name}': {_reason(error)}") from None
    if data.startswith(BYTECODE_MAGIC):
        return data
    try:
        return data.decode("utf-8").replace("\r\n", "\n")
    except UnicodeDecodeError:
        raise UsageError(f"cannot read '{name}': {_kind(name)}") from None


def read_text(name: str) -> str:
    """Reads UTF-8 text from a file; raises UsageError if it cannot be read."""
    try:
        return Path(name).read_text(encoding="utf-8")
    except OSError as error:
        raise UsageError(f"cannot read '{name}': {_reason(error)}") from None
    except UnicodeDecodeError:
        raise UsageError(f"cannot read '{name}': it is no UTF-8 text") from None


def _kind(name: str) -> str:
    """The kind of a file that is not a module."""
    from relax_mlir.source import MODELS  # imports MLIR

    kind = MODELS.get(Path(name).suffix.lower())
    return f"it is {kind}, not MLIR" if kind else "neither UTF-8 text nor MLIR bytecode"


def write_output(name: str, data: str | bytes | Iterable[bytes | memoryview]) -> None:
    """Writes text, bytes or parts to a file, through a temporary one, or to standard output.

    Raises UsageError if the file cannot be written.
    """
    raw = data.encode("utf-8") if isinstance(data, str) else data
    parts = [raw] if isinstance(raw, bytes) else raw
    if name == "-":
        _write_stdout(parts)
        return
    path = Path(name)
    try:
        if path.exists() and not path.is_file():  # a device or a pipe, which must not be replaced
            with path.open("wb") as file:
                file.writelines(parts)
            return
        handle, temporary = tempfile.mkstemp(prefix=path.name + ".", dir=path.parent)
        try:
            with os.fdopen(handle, "wb") as file:
                file.writelines(parts)
            os.chmod(temporary, 0o666 & ~_umask())
            os.replace(temporary, path)
        except BaseException:
            os.unlink(temporary)
            raise
    except OSError as error:
        raise UsageError(f"cannot write '{name}': {_reason(error)}") from None


def write_external(name: str, parts: Iterable[bytes | memoryview]) -> None:
    """Writes the parts of a shared object, with its constants in a file beside it.

    Raises UsageError if the files cannot be written.
    """
    from relax_mlir.runtime.external import save  # brings NumPy

    path = Path(name)
    if name == "-" or (path.exists() and not path.is_file()):
        raise UsageError(f"cannot write '{name}': constants beside it need a file; name it with -o")
    try:
        with tempfile.TemporaryFile(dir=path.absolute().parent) as file:
            file.writelines(parts)
            file.flush()
            save(file, path, external=True)
    except OSError as error:
        raise UsageError(f"cannot write '{name}': {_reason(error)}") from None


def _write_stdout(parts: Iterable[bytes | memoryview]) -> None:
    if sys.stdout is None:
        raise UsageError("cannot write standard output: it is closed")
    try:
        sys.stdout.buffer.writelines(parts)
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        silence_stdout()  # the reader closed the pipe, like `head`
    except OSError as error:
        silence_stdout()
        raise UsageError(f"cannot write standard output: {_reason(error)}") from None


def silence_stdout() -> None:
    """Discards the rest of standard output, so that Python does not report an error at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _reason(error: OSError) -> str:
    return (error.strerror or str(error)).lower()


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
