"""Files mapped into memory, on huge pages where the system has any for files.

A file that is in memory already, because it was written or read not long ago, may lie on small
pages in part: there were not enough huge ones then. Products of one row read it 5 % slower, so it
is read again if there are enough now.
"""

import mmap
import os
from pathlib import Path
from typing import BinaryIO

import numpy as np

MADV_POPULATE_READ = 22  # of Linux 5.14; Python's module does not name it yet
HUGE_PAGE = 2 << 20
_ENOUGH = 0.9  # of a mapping, on huge pages


def map_file(file: BinaryIO, size: int) -> np.ndarray:
    """The bytes of an open file of `size` bytes, read-only.

    Raises OSError if it cannot be mapped.
    """
    memory = _map(file, size)
    huge = huge_bytes(memory)
    # Without any, the system has no huge pages for files.
    if 0 < huge < _ENOUGH * size and free_huge_bytes() > size:
        del memory
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        memory = _map(file, size)
    return memory


def _map(file: BinaryIO, size: int) -> np.ndarray:
    memory = mmap.mmap(file.fileno(), size, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ)
    # What is not in memory yet is read into huge pages.
    _advise(memory, mmap.MADV_HUGEPAGE)
    if not _advise(memory, MADV_POPULATE_READ):
        _advise(memory, mmap.MADV_WILLNEED)
    return np.frombuffer(memory, np.uint8)


def _advise(memory: mmap.mmap, advice: int) -> bool:
    """Whether the system takes the advice, without which all goes on, but slower."""
    try:
        memory.madvise(advice)
    except OSError:
        return False
    return True


def huge_bytes(memory: np.ndarray) -> int:
    """How much of a whole mapping is on huge pages; 0 if the system does not say."""
    try:
        with Path("/proc/self/smaps").open(encoding="utf-8", errors="replace") as lines:
            for line in lines:
                if line.startswith(f"{memory.ctypes.data:x}-"):
                    break
            found = next((line for line in lines if line.startswith("FilePmdMapped:")), None)
    except OSError:
        return 0
    return int(found.split()[1]) << 10 if found else 0


def free_huge_bytes(path: Path = Path("/proc/buddyinfo")) -> int:
    """How much free memory is in pieces of a huge page or more; 0 if the system does not say.

    Columns of the file are numbers of free pieces of 1, 2, 4, .. pages.
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
