"""The cache makes each file once and stays within its size."""

import os
import secrets
import stat
import threading
from pathlib import Path

import pytest
from small_kernels import build

from relax_mlir import atomic_files, cache
from relax_mlir.codegen import BuildStats
from relax_mlir.errors import UsageError

KERNEL = "func.func @f(%x: memref<?xf32>, %i: index) attributes {tir.scheduled} { return }"


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("RELAX_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


def forbidden() -> bytes:
    raise AssertionError("made again")


def test_a_file_is_made_once() -> None:
    path = cache.cached(b"key", lambda: [b"content"])
    assert path.read_bytes() == b"content"
    assert path.suffix == ".so"
    assert cache.cached(b"key", forbidden) == path
    assert cache.cached(b"other", lambda: [b"more"]) != path
    assert cache.lookup(b"key", ".o") is None


def test_a_failure_leaves_nothing(own_cache: Path) -> None:
    with pytest.raises(ZeroDivisionError):
        cache.cached(b"key", lambda: [bytes(1 // 0)])
    assert not list(own_cache.glob("*/*"))
    assert cache.cached(b"key", lambda: [b"later"]).read_bytes() == b"later"


def test_clear(own_cache: Path) -> None:
    cache.cached(b"key", lambda: [b"content"])
    cache.clear()
    assert not list(own_cache.glob("*/*"))
    assert cache.cached(b"key", lambda: [b"new"]).read_bytes() == b"new"


def test_what_was_not_used_for_longest_goes_first() -> None:
    paths = [cache.cached(bytes([i]), lambda: [bytes(100)]) for i in range(4)]
    for age, path in zip([400, 300, 200, 100], paths, strict=True):
        os.utime(path, (0, 10**9 - age))
    cache.cached(bytes([0]), forbidden)  # the oldest is used again
    cache.trim(250)
    assert [path.exists() for path in paths] == [True, False, False, True]


def test_the_size_limit_is_kept(monkeypatch: pytest.MonkeyPatch, own_cache: Path) -> None:
    monkeypatch.setenv("RELAX_CACHE_BYTES", "1000")
    monkeypatch.setattr(cache, "_TRIM_EVERY", 1)
    monkeypatch.setattr(cache, "FRESH_SECONDS", 0)
    newest = [cache.cached(bytes([i]), lambda: [bytes(300)]) for i in range(8)][-1]
    files = list(own_cache.glob("*/*"))
    assert sum(file.stat().st_size for file in files) <= 1000
    assert newest in files


def test_threads_get_whole_files() -> None:
    seen: list[bytes] = []

    def work() -> None:
        for i in range(20):
            seen.append(cache.cached(bytes([i]), lambda: [bytes(1 << 16)]).read_bytes())

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == [bytes(1 << 16)] * 80


def test_files_are_written_in_whole_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(atomic_files, "CHUNK_BYTES", 64)
    written = []
    raw = atomic_files.io.FileIO

    class Raw(raw):
        def write(self, data: memoryview) -> int:
            written.append((self.tell(), len(data)))
            return super().write(data)

    monkeypatch.setattr(atomic_files.io, "FileIO", Raw)
    for sizes in [(), (0,), (1,), (64,), (63, 1, 1), (3, 200, 0, 61, 7), (1000,), (5,) * 40]:
        parts = [secrets.token_bytes(size) for size in sizes]
        written.clear()
        path = cache.store(secrets.token_bytes(9), [*map(memoryview, parts)], ".parts")
        assert path.read_bytes() == b"".join(parts)
        assert written == [(at, min(64, sum(sizes) - at)) for at in range(0, sum(sizes), 64)]


def test_the_folder_follows_the_environment(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert cache.directory() == tmp_path / "cache"
    monkeypatch.delenv("RELAX_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache.directory() == tmp_path / "xdg" / "relax-mlir"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert cache.directory() == tmp_path / "home" / ".cache" / "relax-mlir"
    monkeypatch.setenv("RELAX_CACHE_DIR", "~/own")
    assert cache.folder() == tmp_path / "home" / "own"
    assert not cache.folder().exists()


def test_a_folder_that_cannot_be_made_is_replaced(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("RELAX_CACHE_DIR", str(tmp_path / "file" / "cache"))
    with pytest.warns(UserWarning, match="cannot be written"):
        path = cache.cached(b"key", lambda: [b"content"])
    assert path.read_bytes() == b"content"
    assert stat.S_IMODE(path.parent.parent.stat().st_mode) == 0o700


def test_a_size_that_is_no_number_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RELAX_CACHE_BYTES", "2 GiB")
    with pytest.raises(UsageError, match="RELAX_CACHE_BYTES is '2 GiB'; expects a count of bytes"):
        cache.cached(b"key", lambda: [bytes(65 << 20)])


def test_a_second_build_compiles_nothing() -> None:
    first, second, third = BuildStats(), BuildStats(), BuildStats()
    build(KERNEL, "f", stats=first)
    assert (first.objects, first.cached_objects) == (2, 0)
    build(KERNEL, "f", stats=second)
    assert (second.objects, second.cached_objects) == (2, 2)
    build(KERNEL, "f", stats=third, opt_level=1)
    assert third.cached_objects == 0
    assert list(second.seconds) == [
        "math",
        "parallel",
        "separate",
        "lower",
        "translate",
        "llvm",
        "link",
    ]
    assert "2 objects, 2 of them cached" in str(second)
