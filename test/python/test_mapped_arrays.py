"""Arrays in temporary files keep their values when their memory leaves."""

import gc
import mmap
from pathlib import Path

import numpy as np
import pytest

from relax_mlir import mapped_arrays
from relax_mlir.mapped_arrays import LARGE, pieces, release, zeros

F32 = np.dtype(np.float32)


def resident(array: np.ndarray) -> int:
    """The bytes of an array that are in this process's memory."""
    address, inside, total = array.ctypes.data, False, 0
    for line in Path("/proc/self/smaps").read_text().splitlines():
        head = line.split()[0]
        if "-" in head and not head.endswith(":"):
            first, last = (int(part, 16) for part in head.split("-"))
            inside = first <= address < last
        elif inside and head == "Rss:":
            total += int(line.split()[1]) << 10
    return total


def test_values_stay_when_memory_leaves(tmp_path):
    one, two = (zeros((3, LARGE // 8), F32, tmp_path) for _ in range(2))
    assert not one.any()
    assert not list(tmp_path.iterdir())
    one[...], two[...] = 1, 2
    assert resident(one) >= one.nbytes
    release(one)
    release(two)
    assert resident(one) <= one.nbytes // 2
    assert (one == 1).all()
    assert (two == 2).all()
    release(one[1])
    assert (one == 1).all()


def test_large_arrays_have_files_of_their_own(tmp_path, monkeypatch):
    monkeypatch.setattr(mapped_arrays, "_FILE", 3 * LARGE)
    arrays = [zeros((n * LARGE // 4 + 1,), F32, tmp_path) for n in (1, 1, 5, 1, 2)]
    for value, array in enumerate(arrays):
        array[...] = value
    for value, array in enumerate(arrays):
        release(array)
        assert (array == value).all()


def test_files_go_with_their_arrays(tmp_path):
    before = len(mapped_arrays._files)
    array = zeros((64 * LARGE,), F32, tmp_path)
    assert len(mapped_arrays._files) == before + 1
    del array
    gc.collect()
    assert len(mapped_arrays._files) == before


@pytest.mark.parametrize("size", [0, 1, LARGE // 4])
def test_a_full_disk(size, tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(mapped_arrays.os, "posix_fallocate", full)
    monkeypatch.setattr(mapped_arrays, "_last", (0, 0))
    array = zeros((size,), F32, tmp_path)
    array[...] = 3
    release(array)
    assert (array == 3).all()


def test_memory_of_others_is_not_released(tmp_path):
    kept = zeros((LARGE,), F32, tmp_path)
    other = np.full(LARGE, 5, np.float32)
    release(other)
    release(memoryview(bytes(mmap.PAGESIZE)))
    assert (other == 5).all()
    assert not kept.any()


@pytest.mark.parametrize("count", [0, 1, mapped_arrays.PIECE, mapped_arrays.PIECE * 2 + 3])
def test_pieces(count, tmp_path):
    array = zeros((count,), np.dtype(np.uint8), tmp_path)
    array[...] = np.arange(count) % 251
    for part in (array.tobytes(), memoryview(array)):
        assert b"".join(pieces(part)) == array.tobytes()
