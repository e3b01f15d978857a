"""Maps files into memory, on huge pages if the system supports them for files.

A file in the page cache may partly be on small pages, if huge ones were scarce when it was read or
written. Products of one row are 5 % slower on it then, so it is read again if enough huge pages are
free now.
"""

import mmap
import os
from pathlib import Path
from typing import BinaryIO

import numpy as np

MADV_POPULATE_READ = 22  # of Linux 5.14; Python's module does not name it yet
HUGE_PAGE = 2 << 20
_ENOUGH = 0.9  # share of a mapping on huge pages


def map_file(file: BinaryIO, size: int) -> np.ndarray:
    """The bytes of an open file of `size` bytes, read-only.

    Raises OSError if it cannot be mapped.
    """
    memory = _map(file, size)
    huge = huge_bytes(memory)
    # Zero means that the system does not support huge pages for files.
    if 0 < huge < _ENOUGH * size and free_huge_bytes() > size:
        del memory
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        memory = _map(file, size)
    return memory


def _map(file: BinaryIO, size: int) -> np.ndarray:
    memory = mmap.mmap(file.fileno(), size, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ)
    # Reads the rest of the file into huge pages.
    _advise(memory, mmap.MADV_HUGEPAGE)
    if not _advise(memory, MADV_POPULATE_READ):
        _advise(memory, mmap.MADV_WILLNEED)
    return np.frombuffer(memory, np.uint8)


def _advise(memory: mmap.mmap, advice: int) -> bool:
    """Gives optional advice to the system; returns whether it is supported."""
    try:
        memory.madvise(advice)
    except OSError:
        return False
    return True


def huge_bytes(memory: np.ndarray) -> int:
    """The bytes of a mapping that are on huge pages; 0 if unknown."""
    try:
        with Path("/proc/self/smaps").open(encoding="utf-8", errors="replace") as lines:
            for line in lines:
                if line.startswith(f"{memory.ctypes.data:x}-"):
                    break
            line_ = next((line for line in lines if line.startswith("FilePmdMapped:")), None)
    except OSError:
        return 0
    return int(line_.split()[1]) << 10 if line_ else 0


def free_huge_bytes(path: Path = Path("/proc/buddyinfo")) -> int:
    """The bytes of free memory in blocks of a huge page or more; 0 if unknown.

    Columns of the file are counts of free blocks of 1, 2, 4, ... pages.
    """
    try:
        rows = path.read_text(encoding="utf-8").splitlines()
    except OSError:
        return 0
    total = 0
    for row in rows:
        counts = row.partition("zone")[2].split()[1:]
        sizes = (mmap.PAGESIZE << order for order in range(len(counts)))
        total += sum(int(n) * size for n, size in zip(counts, sizes) if size >= HUGE_PAGE)
    return total
