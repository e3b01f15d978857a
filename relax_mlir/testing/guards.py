"""Arrays next to guard pages.

    x = guarded(values)                     the byte after x is on a guard page
    y = guarded(values, at_end=False)       the byte before it is
    check_guards(x)                         checks the canary at the other end of x

An access to a guard page kills the process with SIGSEGV, so use pytest-xdist or a child process if
other tests should continue.
"""

import ctypes
import mmap

import numpy as np

_CANARY = 0xA5
_PROT_NONE = 0


class _Guarded(np.ndarray):
    """An array that keeps its pages alive, and knows its offset in them."""

    pages: np.ndarray | None
    begin: int

    def __array_finalize__(self, source: object) -> None:
        self.pages, self.begin = getattr(source, "pages", None), getattr(source, "begin", 0)


def guarded(array: np.ndarray, at_end: bool = True) -> np.ndarray:
    """A contiguous copy of the array between two guard pages, adjacent to one of them.

    It is aligned only to its elements.
    """
    page, size = mmap.PAGESIZE, array.nbytes
    room = max(1, -(-size // page)) * page
    pages = np.frombuffer(mmap.mmap(-1, room + 2 * page), np.uint8)
    pages[page : page + room] = _CANARY
    begin = page + room - size if at_end else page
    copy = np.ndarray.__new__(_Guarded, array.shape, array.dtype, pages, begin)
    copy.pages, copy.begin = pages, begin
    copy[...] = array
    for border in (0, page + room):
        _forbid(pages.ctypes.data + border, page)
    return copy


def check_guards(array: np.ndarray) -> None:
    """Raises AssertionError if the memory around a guarded array was written."""
    assert isinstance(array, _Guarded), "the array comes from guarded()"
    assert array.pages is not None, "it has not been copied since"
    pages, begin, page = array.pages, array.begin, mmap.PAGESIZE
    around = (pages[page:begin], pages[begin + array.nbytes : pages.size - page])
    assert all((part == _CANARY).all() for part in around), "wrote outside of the array"


def _forbid(address: int, size: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mprotect(ctypes.c_void_p(address), ctypes.c_size_t(size), _PROT_NONE):
        raise OSError(ctypes.get_errno(), "mprotect failed")
