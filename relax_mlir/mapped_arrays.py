"""Large arrays in temporary files, mapped: memory that the system may take back.

    array = zeros((4096, 4096), np.dtype(np.float32), folder)    # in a file that has no name
    array[...] = values
    release(array)                        # leaves memory, and is read again from the file

What a compiler makes of the weights of a model would else take as much memory as the model.
"""

import math
import mmap
import os
import tempfile
import threading
import weakref
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import numpy as np

LARGE = 1 << 20
"""Bytes from which an array is in a file."""
PIECE = 2 << 20
"""Bytes that are read or written before they are released."""
_FILE = 64 << 20
"""Bytes of a file, each of which takes a descriptor; a larger array has one of its own."""

_lock = threading.Lock()
_files: "weakref.WeakValueDictionary[int, mmap.mmap]" = weakref.WeakValueDictionary()
"""Mapped files by their addresses."""
_last: tuple[int, int] = (0, 0)
"""The address of the file that is not full yet, and the bytes of it that arrays have."""


def zeros(shape: tuple[int, ...], dtype: np.dtype, folder: Path) -> np.ndarray:
    """An array of zeros, in a file of the folder if it is large and there is space on the disk."""
    size = math.prod(shape) * dtype.itemsize
    if size >= LARGE:
        with suppress(OSError):
            return _reserved(size, folder).view(dtype).reshape(shape)
    return np.zeros(shape, dtype)


def _reserved(size: int, folder: Path) -> np.ndarray:
    """Bytes of a mapped file that nothing else has, from a page on."""
    global _last
    with _lock:
        address, used = _last
        file = _files.get(address)
        if file is None or len(file) - used < size:
            file = _mapped(max(size, _FILE), folder)
            address, used = _address(file), 0
            _files[address] = file
        _last = address, -(-(used + size) // mmap.PAGESIZE) * mmap.PAGESIZE
        return np.frombuffer(file, np.uint8, size, used)


def _mapped(size: int, folder: Path) -> mmap.mmap:
    """A new file. Raises OSError if there is no space: a write would end the process then."""
    with tempfile.TemporaryFile(dir=folder) as file:
        os.posix_fallocate(file.fileno(), 0, size)
        return mmap.mmap(file.fileno(), size)


def _address(memory: "mmap.mmap | memoryview | np.ndarray") -> int:
    return np.frombuffer(memory, np.uint8).ctypes.data


def release(memory: "memoryview | np.ndarray") -> None:
    """Lets the whole pages of contiguous memory leave, if `zeros` made it; it keeps its values."""
    if memory.nbytes < mmap.PAGESIZE or not len(_files):
        return
    start = _address(memory)
    for address, file in list(_files.items()):
        if 0 <= start - address < len(file):
            first = -(-(start - address) // mmap.PAGESIZE) * mmap.PAGESIZE
            last = (start - address + memory.nbytes) // mmap.PAGESIZE * mmap.PAGESIZE
            if last > first:
                file.madvise(mmap.MADV_DONTNEED, first, last - first)


def pieces(part: bytes | memoryview) -> Iterator[bytes | memoryview]:
    """The bytes of what is to be written: each piece is released when the next one is asked for."""
    if len(part) <= PIECE:
        yield part
        return
    flat = memoryview(part).cast("B")
    for at in range(0, len(flat), PIECE):
        piece = flat[at : at + PIECE]
        yield piece
        release(piece)
