"""Mapped files: their bytes, and when they are read again for the sake of huge pages."""

import os

import numpy as np
import pytest

from relax_mlir.llm.decoder import mapping
from relax_mlir.llm.decoder.mapping import HUGE_PAGE, free_huge_bytes, huge_bytes, map_file

SIZE = 2 * HUGE_PAGE + 4097


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "numbers"
    path.write_bytes(np.random.default_rng().integers(0, 256, SIZE, np.uint8).tobytes())
    with path.open("rb") as opened:
        yield opened


@pytest.mark.parametrize("size", [1, 4096, 4097, SIZE])
def test_bytes(tmp_path, size):
    expected = np.random.default_rng().integers(0, 256, size, np.uint8)
    path = tmp_path / "numbers"
    path.write_bytes(expected.tobytes())
    with path.open("rb") as opened:
        found = map_file(opened, size)
    np.testing.assert_array_equal(found, expected)
    assert not found.flags.writeable
    assert huge_bytes(found) in range(0, size + 1, HUGE_PAGE)


@pytest.mark.parametrize(
    ("huge", "free", "again"),
    [
        (HUGE_PAGE, SIZE + 1, True),
        (HUGE_PAGE, SIZE, False),
        (0, SIZE + 1, False),
        (2 * HUGE_PAGE, SIZE + 1, False),
    ],
)
def test_read_again(monkeypatch, file, huge, free, again):
    calls = []
    forget = os.posix_fadvise
    monkeypatch.setattr(mapping, "huge_bytes", lambda memory: huge)
    monkeypatch.setattr(mapping, "free_huge_bytes", lambda: free)
    monkeypatch.setattr(os, "posix_fadvise", lambda *args: (calls.append(args), forget(*args)))
    found = map_file(file, SIZE)
    assert calls == ([(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)] if again else [])
    assert found.tobytes() == file.read()


def test_free_huge_bytes(monkeypatch, tmp_path):
    monkeypatch.setattr(mapping.mmap, "PAGESIZE", 4096)
    counts = [0, 15868, 4354, 372, 607, 504, 416, 2790, 2499]
    rows = [[*counts, 1, 3], [*counts, 2, 842]]
    names = ("DMA", "Normal")
    lines = [f"Node 0, zone {n:>8} {' '.join(map(str, r))}" for n, r in zip(names, rows)]
    path = tmp_path / "buddyinfo"
    path.write_text("\n".join(lines))
    assert free_huge_bytes(path) == (1 + 2 * 3 + 2 + 2 * 842) * HUGE_PAGE
    assert free_huge_bytes(tmp_path / "absent") == 0
