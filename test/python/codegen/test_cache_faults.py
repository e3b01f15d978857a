"""The cache finds damaged files, refuses what others may have written, and survives the rest."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import relax_mlir
from relax_mlir import cache, trusted_files
from relax_mlir.errors import UsageError

EXP = """
!x = tensor<?xf32, #graph.shape<["n"]>>
func.func @main(%x: !x) -> !x {
  %0 = "graph.exp"(%x) : (!x) -> !x
  return %0 : !x
}
"""
X = np.linspace(-1, 1, 19, dtype=np.float32)
SOMEBODY = 12345

STORES = """
import sys
from relax_mlir import cache
for i in range(10**9):
    data = bytes([i % 251]) * (1 + i * 7919 % 300_000)
    assert cache.store(str(i % 97).encode(), [data], ".so")
    if i == 0:
        print("begun", flush=True)
"""


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("RELAX_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


def entries(folder: Path, suffix: str = "") -> list[Path]:
    return list(folder.glob(f"??/*{suffix}"))


def run_exp() -> None:
    (result,) = np.asarray(relax_mlir.compile(EXP)["main"](X)).reshape(1, -1)
    np.testing.assert_allclose(result, np.exp(X.astype(np.float64)), rtol=1e-6)


def truncate(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def empty(path: Path) -> None:
    os.truncate(path, 0)


def zero(path: Path) -> None:
    path.write_bytes(bytes(path.stat().st_size))


def flip_a_bit(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.unlink()  # this process may have mapped it
    path.write_bytes(data)


def append(path: Path) -> None:
    path.write_bytes(path.read_bytes() + b"more")


def be_a_link(path: Path) -> None:
    other = path.with_name("other")
    path.rename(other)
    path.symlink_to(other)


def be_a_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


DAMAGES = [truncate, empty, zero, flip_a_bit, append, be_a_link, be_a_pipe]


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_files_are_as_good_as_none(damage) -> None:
    path = cache.cached(b"key", lambda: [bytes(range(256)) * 9])
    damage(path)
    assert cache.lookup(b"key", ".so") is None
    assert cache.read(b"key", ".so") is None
    again = cache.cached(b"key", lambda: [bytes(range(256)) * 9])
    assert again == path
    assert not path.is_symlink()
    assert cache.read(b"key", ".so") == bytes(range(256)) * 9


def test_modules_are_built_again_from_damaged_files(own_cache: Path) -> None:
    run_exp()
    found = entries(own_cache)
    assert {path.suffix for path in found} == {".so", ".o", ".kernel"}
    for suffixes in [{".so"}, {".so", ".kernel"}, {".so", ".kernel", ".o"}]:
        for path in found:
            if path.suffix in suffixes:
                flip_a_bit(path)
        run_exp()


def test_of_large_files_pieces_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trusted_files, "WHOLE_BYTES", 1 << 20)
    data = np.random.default_rng(0).bytes(3 << 20)
    path = cache.cached(b"key", lambda: [data], ".weights")
    assert cache.lookup(b"key", ".weights") == path
    for begin, length in [(0, 4096), (1 << 20, 1 << 20), ((3 << 20) - 4096, 4096)]:
        path.write_bytes(data[:begin] + bytes(length) + data[begin + length :])
        assert cache.lookup(b"key", ".weights") is None
    path.write_bytes(data[:-1])
    assert cache.lookup(b"key", ".weights") is None


@pytest.mark.parametrize("mode", [0o777, 0o775, 0o1777, 0o702])
def test_a_folder_that_others_can_write_to_is_refused(own_cache: Path, mode: int) -> None:
    own_cache.mkdir()
    own_cache.chmod(mode)
    message = rf"'{own_cache}' is refused: code is loaded from it, but others may write to it "
    message += rf"\(mode {mode:o}\); run 'chmod go-w {own_cache}' if nobody did, or set RELAX_CACHE"
    with pytest.raises(UsageError, match=message):
        relax_mlir.compile(EXP)


def test_inner_folders_and_files_that_others_can_write_to_are_refused() -> None:
    path = cache.cached(b"key", lambda: [b"content"])
    for changed in (path.parent, path):
        mode = changed.stat().st_mode
        changed.chmod(0o777)
        with pytest.raises(UsageError, match=rf"'{changed}' is refused: .*chmod go-w"):
            cache.cached(b"key", lambda: [b"content"])
        changed.chmod(mode)
    assert cache.read(b"key", ".so") == b"content"


@pytest.mark.skipif(os.geteuid() != 0, reason="only the superuser can give files away")
def test_what_belongs_to_somebody_else_is_refused(own_cache: Path) -> None:
    path = cache.cached(b"key", lambda: [b"content"])
    for changed in (path, path.parent):
        os.chown(changed, SOMEBODY, -1)
        with pytest.raises(UsageError, match=rf"'{changed}' is .* belongs to user {SOMEBODY}, not"):
            cache.lookup(b"key", ".so")
        os.chown(changed, 0, -1)
    os.chown(own_cache, SOMEBODY, -1)
    cache._usable.cache_clear()
    with pytest.raises(UsageError, match=rf"'{own_cache}' is .* belongs to user {SOMEBODY}, not"):
        cache.directory()


def test_folders_are_closed_whatever_the_umask(own_cache: Path) -> None:
    before = os.umask(0)
    try:
        path = cache.cached(b"key", lambda: [b"content"])
        assert cache.lookup(b"key", ".so") == path
    finally:
        os.umask(before)
    for made in (own_cache, path.parent, path):
        assert not made.stat().st_mode & 0o022


def test_a_link_to_a_folder_is_followed_once(own_cache: Path, tmp_path: Path) -> None:
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
    own_cache.symlink_to(tmp_path / "first")
    assert cache.directory() == tmp_path / "first"
    own_cache.unlink()
    own_cache.symlink_to(tmp_path / "second")
    assert cache.directory() == tmp_path / "first"


def test_what_is_in_use_or_being_written_stays(own_cache: Path) -> None:
    path = cache.cached(b"key", lambda: [b"content"])
    writing = path.with_name("tmpabc.new")
    left = path.with_name("tmpdef.new")
    for file in (writing, left):
        file.write_bytes(bytes(1000))
    os.utime(left, (0, time.time() - 2 * cache.ABANDONED_SECONDS))
    cache.trim(0)
    assert sorted(entries(own_cache)) == sorted([path, writing])
    os.utime(path, (0, 1))
    cache.trim(0)
    assert entries(own_cache) == [writing]
    cache.clear()
    assert entries(own_cache) == [writing]


def test_a_file_that_is_found_meanwhile_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another process looks it up after its age was read, and before it would be removed."""
    path = cache.cached(b"key", lambda: [b"content"])
    os.utime(path, (0, 1))
    known = cache._entries("")
    assert cache.lookup(b"key", ".so") == path
    monkeypatch.setattr(cache, "_entries", lambda suffix: known)
    cache.trim(0)
    assert path.exists()


def test_a_full_disk_keeps_nothing_and_computes(own_cache: Path, tmp_path: Path) -> None:
    """A limit on the size of files stands for the full disk: it lets nothing but the code pass."""
    (tmp_path / "exp.mlir").write_text(EXP)
    program = f"""
import numpy as np, relax_mlir, resource, signal
from relax_mlir import cache
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
exe = relax_mlir.compile({EXP!r})
before = cache.written_whole
def full(folder, name, **options):
    if folder.is_relative_to({str(own_cache)!r}):
        raise OSError(28, "No space left on device", str(folder))
    return before(folder, name, **options)
cache.written_whole = full
exe = relax_mlir.compile({EXP!r}, opt_level=1)
print(not exe.path.is_relative_to({str(own_cache)!r}), exe["main"](np.zeros(3, np.float32)))
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
try:
    relax_mlir.compile({EXP!r}, opt_level=0)
except relax_mlir.errors.UsageError as error:
    print(error)
"""
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    first, second = found.stdout.splitlines()
    assert first == "True [1. 1. 1.]"
    assert second.startswith("cannot write the compiled module to '/")
    assert second.endswith("too large; set RELAX_CACHE_DIR or TMPDIR to a folder with space")
    assert f"nothing is stored in the cache folder '{own_cache}': no space left" in found.stderr
    assert not entries(own_cache, ".new")


def kill_writers(own_cache: Path, rounds: int, seed: int) -> None:
    """Kills a process that stores files, at random moments; what is found is whole each time."""
    generator = random.Random(seed)
    program = [sys.executable, "-c", STORES]
    for _ in range(rounds):
        with subprocess.Popen(program, stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == b"begun\n"
            time.sleep(generator.uniform(0, 0.05))
            process.send_signal(signal.SIGKILL)
        for i in range(97):
            data = cache.read(str(i).encode(), ".so")
            assert data is None or data == data[:1] * len(data)
        assert cache.read(b"0", ".so") is not None
        assert cache.read(str(generator.random()).encode(), ".so") is None
        assert cache.cached(b"mine", lambda: [b"content"]).read_bytes() == b"content"


def test_killed_writers_leave_a_working_cache(own_cache: Path) -> None:
    kill_writers(own_cache, 4, seed=1)


@pytest.mark.sweep
def test_many_killed_writers(own_cache: Path) -> None:
    kill_writers(own_cache, 200, seed=2)


def kill_compilers(seconds: list[float]) -> None:
    program = [sys.executable, "-c", f"import relax_mlir; relax_mlir.compile({EXP!r})"]
    for moment in seconds:
        with subprocess.Popen(program) as process:
            try:
                process.wait(moment)
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGKILL)
    run_exp()


def test_a_compiler_is_killed() -> None:
    kill_compilers([0.9])


@pytest.mark.sweep
def test_many_compilers_are_killed() -> None:
    kill_compilers([0.5 + 0.01 * i for i in range(100)])


def test_two_processes_compile_the_same(own_cache: Path) -> None:
    program = [sys.executable, "-c", f"import relax_mlir; relax_mlir.compile({EXP!r})"]
    both = [subprocess.Popen(program) for _ in range(2)]
    assert [process.wait() for process in both] == [0, 0]
    (made,) = entries(own_cache, ".so")
    assert not entries(own_cache, ".new")
    np.testing.assert_allclose(relax_mlir.load(made)["main"](X), np.exp(X), rtol=1e-6)
