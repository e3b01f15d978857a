"""A cache of compiled files on disk, addressed by what they were made from.

A file's name is the SHA-256 of its key, so nothing in the cache is ever out of date. Files come
into being by an atomic rename: readers and writers in other processes need no locks. The folder is
$RELAX_CACHE_DIR, else `relax-mlir` in $XDG_CACHE_HOME or `~/.cache`; it is kept below
$RELAX_CACHE_BYTES (2 GiB by default) by dropping what was not used for longest.
"""

import atexit
import hashlib
import io
import os
import shutil
import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from relax_mlir.errors import UsageError

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

DEFAULT_BYTES = 2 << 30
CHUNK_BYTES = 2 << 20
_TRIM_EVERY = 64 << 20
_since_trim = _TRIM_EVERY  # the first file made looks after what earlier processes left


def cached(key: bytes, make: Callable[[], bytes], suffix: str = ".so") -> Path:
    """The file made from that key: from the cache if it is there, else `make()` is called.

    `suffix` is part of the key.
    """
    path = lookup(key, suffix)
    return store(key, [make()], suffix) if path is None else path


def lookup(key: bytes, suffix: str) -> Path | None:
    """The cached file of that key, marked as used now; None if there is none."""
    path = _path(key, suffix)
    try:
        os.utime(path)
    except OSError:
        return None
    return path


def store(key: bytes, parts: Sequence[bytes | memoryview], suffix: str) -> Path:
    """Puts a file into the cache: the parts, joined."""
    with create(key, suffix) as file:
        file.writelines(parts)
    return _path(key, suffix)


@contextmanager
def create(key: bytes, suffix: str) -> Iterator[BinaryIO]:
    """Opens a file to be written, which becomes that of the key when the block ends without error.

    Raises OSError if it cannot be written.
    """
    global _since_trim
    path = _path(key, suffix)
    with _replacing(path) as file:
        yield file
        _since_trim += file.tell()
    if _since_trim >= _TRIM_EVERY:
        _since_trim = 0
        trim(limit(), keep=path)


def limit() -> int:
    """The bytes that the cache may take. Raises UsageError if the environment says no number."""
    chosen = os.environ.get("RELAX_CACHE_BYTES") or str(DEFAULT_BYTES)
    if not chosen.isdecimal():
        raise UsageError(f"RELAX_CACHE_BYTES is '{chosen}'; expects a number of bytes")
    return int(chosen)


class _InChunks(io.BufferedWriter):
    """Writes to the file in whole chunks, which Linux can keep, and map, as huge pages."""

    def write(self, data: "ReadableBuffer", /) -> int:
        rest = memoryview(data).cast("B")
        size = len(rest)
        while rest:
            room = CHUNK_BYTES - self.tell() % CHUNK_BYTES
            super().write(rest[:room])
            rest = rest[room:]
        return size


def write_atomically(path: Path, *parts: bytes | memoryview) -> None:
    """Writes a file in one step: readers see all of it, or what was there before."""
    with _replacing(path) as file:
        file.writelines(parts)


@contextmanager
def _replacing(path: Path) -> Iterator[BinaryIO]:
    """A file to be written, which takes the place of `path` when the block ends without error."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, suffix=".new")
    try:
        with _InChunks(io.FileIO(handle, "w"), CHUNK_BYTES) as file:
            yield file
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except OSError as error:
        Path(temporary).unlink(missing_ok=True)
        error.filename = error.filename or str(path)  # writing does not name the file
        raise
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def trim(limit: int, keep: Path | None = None, suffix: str = "") -> None:
    """Drops files, those not used for longest first, until the rest takes at most `limit` bytes.

    With a `suffix`, looks at the files that have it only.
    """
    entries = []
    for path in directory().glob(f"??/*{suffix}"):
        try:
            status = path.stat()
        except FileNotFoundError:  # another process trims too
            continue
        entries.append((status.st_mtime_ns, status.st_size, path))
    total = sum(size for _, size, _ in entries)
    for _, size, path in sorted(entries):
        if total <= limit:
            return
        if path != keep:
            path.unlink(missing_ok=True)
            total -= size


def clear() -> None:
    """Empties the cache."""
    trim(0)


def folder() -> Path:
    """Where the cache is to be, whether or not there is such a folder."""
    if chosen := os.environ.get("RELAX_CACHE_DIR"):
        return Path(chosen).expanduser()
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "relax-mlir"


def directory() -> Path:
    """The folder of the cache; a temporary one if it cannot be written to."""
    return _writable(folder())


@lru_cache
def _writable(path: Path) -> Path:
    try:
        path.mkdir(parents=True, exist_ok=True)
        if os.access(path, os.W_OK | os.X_OK):
            return path
        reason = "permission denied"
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
    warnings.warn(
        f"the cache folder '{path}' cannot be written ({reason}): nothing is kept for later starts",
        stacklevel=2,
    )
    return _temporary()


@lru_cache
def _temporary() -> Path:
    """A folder for this process alone: one that others can guess would not be safe to load from."""
    path = Path(tempfile.mkdtemp(prefix="relax-mlir-"))
    atexit.register(shutil.rmtree, path, ignore_errors=True)
    return path


def _path(key: bytes, suffix: str) -> Path:
    name = hashlib.sha256(key).hexdigest()
    return directory() / name[:2] / (name[2:] + suffix)
