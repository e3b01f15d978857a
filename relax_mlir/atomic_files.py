"""Writes files atomically: readers see the complete new file, or the old one."""

import io
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

CHUNK_BYTES = 2 << 20
UNFINISHED = ".new"
"""The suffix of files that are being written, or whose writer was killed."""


class _InChunks(io.BufferedRandom):
    """Writes to the file in whole chunks, which Linux can cache and map as huge pages."""

    def write(self, data: "ReadableBuffer", /) -> int:
        rest = memoryview(data).cast("B")
        size = len(rest)
        while rest:
            room = CHUNK_BYTES - self.tell() % CHUNK_BYTES
            super().write(rest[:room])
            rest = rest[room:]
        return size


def write_atomically(path: Path, *parts: bytes | memoryview) -> None:
    """Writes a file atomically. Raises OSError, with the file's name, if it cannot be written."""
    with written_whole(path.parent, lambda _: path.name) as file:
        file.writelines(parts)


@contextmanager
def written_whole(
    folder: Path, name: Callable[[BinaryIO], str], durable: bool = True
) -> Iterator[BinaryIO]:
    """Opens a file for writing, which gets its name when the block ends without error.

    `name` may read the file. If it is `durable`, its bytes are on disk before its name is; else a
    machine that crashes may leave a damaged file. Raises OSError, with the file's name, if it
    cannot be written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=folder, suffix=UNFINISHED)
    try:
        with _InChunks(io.FileIO(handle, "r+"), CHUNK_BYTES) as file:
            yield file
            file.flush()
            if durable:
                os.fsync(handle)
            os.fchmod(handle, 0o644)
            path = folder / name(file)
        os.replace(temporary, path)
    except OSError as error:
        Path(temporary).unlink(missing_ok=True)
        error.filename = error.filename or temporary  # writing does not name the file
        raise
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
