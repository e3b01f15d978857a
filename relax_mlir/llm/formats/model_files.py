"""Opens untrusted model files: none may hang the process or exhaust memory."""

import json
import mmap
import os
import reprlib
import stat
from pathlib import Path
from typing import Any, BinaryIO

from relax_mlir.errors import ModelError

MAX_JSON_BYTES = 256 << 20
"""Above any tokenizer: one of 260,000 tokens takes 33 MB."""

LONGEST = 200
"""The maximum length of messages from other packages."""

_kinds = {
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}

_shortener = reprlib.Repr()
_shortener.maxstring = _shortener.maxother = _shortener.maxlong = 60
_shortener.maxlevel = 3


def quoted(value: Any) -> str:
    """A value of a file for a message: on one line, and shortened."""
    return _shortener.repr(value)


def in_short(error: BaseException) -> str:
    """The message of an error of another package, on one line, truncated: it may quote a file."""
    text = "".join(c if c.isprintable() else " " for c in str(error)[:LONGEST])
    return text if len(text) < LONGEST else f"{text}..."


def open_model_file(path: Path) -> BinaryIO:
    """Opens a regular file. Raises ModelError, without waiting, if it is of another kind."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError) as error:  # ValueError: NUL in the name
        raise ModelError(f"{path}: cannot be read: {error}") from error
    kind = stat.S_IFMT(os.fstat(handle).st_mode)
    if kind != stat.S_IFREG:
        os.close(handle)
        raise ModelError(
            f"{path}: cannot be read: it is {_kinds.get(kind, 'no file')}; expects a regular file"
        )
    return os.fdopen(handle, "rb")


def map_model_file(path: Path) -> mmap.mmap:
    """The bytes of a file, mapped into memory. Raises ModelError if it cannot be mapped."""
    with open_model_file(path) as file:
        try:
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except (OSError, ValueError) as error:  # ValueError: mmap refuses an empty file
            raise ModelError(f"{path}: cannot be read: {error}") from error


def read_model_file(path: Path, max_bytes: int = MAX_JSON_BYTES) -> bytes:
    """The bytes of a file. Raises ModelError if it cannot be read, or has more than `max_bytes`."""
    with open_model_file(path) as file:
        try:
            data = file.read(max_bytes + 1)
        except OSError as error:
            raise ModelError(f"{path}: cannot be read: {error}") from error
    if len(data) > max_bytes:
        raise ModelError(f"{path}: has more than {max_bytes} bytes, the maximum")
    return data


def parse_json(path: Path, data: bytes, what: str = "") -> Any:
    """Parses JSON text of a file, or of the part `what`. Raises ModelError if it is invalid."""
    try:
        value = json.loads(data.decode("utf-8"))
        if b"\\u" in data:
            # Half of a surrogate pair, which no text can have.
            json.dumps(value, ensure_ascii=False).encode()
        return value
    except ValueError as error:  # bad UTF-8, bad JSON, or an integer of thousands of digits
        raise ModelError(f"{path}: {what}cannot be read: {error}") from None
    except RecursionError:
        raise ModelError(f"{path}: {what}cannot be read: it is nested too deeply") from None
