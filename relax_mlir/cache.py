"""A cache of compiled files on disk, addressed by their inputs.

A file's name has the SHA-256 of its key, so that no entry is ever out of date, and a digest of its
bytes, so that a damaged file is ignored. Files are created by an atomic rename: readers and writers
in other processes need no locks, and a killed writer leaves at most a temporary file. The folder is
$RELAX_CACHE_DIR, else `relax-mlir` in $XDG_CACHE_HOME or `~/.cache`; it is refused if others may
write to it. The least recently used files are removed to limit its size to $RELAX_CACHE_BYTES (2
GiB by default).
"""

import atexit
import glob
import hashlib
import os
import random
import shutil
import tempfile
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from typing import BinaryIO

from relax_mlir.atomic_files import UNFINISHED, written_whole
from relax_mlir.errors import UsageError
from relax_mlir.mapped_arrays import pieces
from relax_mlir.trusted_files import check_trusted, digest, make_folder, open_trusted

Part = bytes | memoryview
DEFAULT_BYTES = 2 << 30
ABANDONED_SECONDS = 3600
"""The age at which an unfinished file is taken to have no writer any more."""
FRESH_SECONDS = 60
"""The time for which no file is evicted: the process that looked it up or made it may load it."""
_TRIM_EVERY = 64 << 20
"""Stored bytes, of any processes, after which the folder is trimmed; less for a small limit."""
_since_trim = random.random() * _TRIM_EVERY  # so that short processes trim in turn


def cached(key: bytes, make: Callable[[], Iterable[Part]], suffix: str = ".so") -> Path:
    """The file of a key: from the cache if it is there, else written from the parts of `make()`.

    `suffix` is part of the key. If the cache cannot be written, the file is in a temporary folder.
    Raises UsageError if the cache is not safe, or no folder has space for the file.
    """
    path = lookup(key, suffix)
    if path is not None:
        return path
    parts = list(make())
    if (path := store(key, parts, suffix)) is not None:
        return path
    try:
        return _stored(_temporary(), key, parts, suffix)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise UsageError(
            f"cannot write the compiled module to '{error.filename}': {reason}; set "
            "RELAX_CACHE_DIR or TMPDIR to a folder with space"
        ) from None


def lookup(key: bytes, suffix: str) -> Path | None:
    """The cached file of a key, marked as used now; None if it is missing or damaged.

    Raises UsageError if somebody else may have written it.
    """
    return next((path for path, _ in _entries_of(key, suffix)), None)


def read(key: bytes, suffix: str) -> bytes | None:
    """The bytes of the cached file of a key; otherwise as `lookup`."""
    return next((file.read() for _, file in _entries_of(key, suffix)), None)


def _entries_of(key: bytes, suffix: str) -> Iterator[tuple[Path, BinaryIO]]:
    """The intact files of a key, opened."""
    folder, name = _location(directory(), key)
    try:
        status = folder.lstat()
        names = [entry for entry in os.listdir(folder) if entry.startswith(name)]
    except (FileNotFoundError, NotADirectoryError):
        return
    check_trusted(folder, status)
    for entry in names:
        path = folder / entry
        file = open_trusted(path) if entry.endswith(suffix) else None
        if file is None:
            continue
        with file:
            # Marked before it is checked: a trimming process looks again before it removes a file.
            with suppress(PermissionError):  # a file of the superuser
                os.utime(file.fileno())
            if entry == f"{name}{digest(file)}{suffix}" and path.exists():
                yield path, file


def store(key: bytes, parts: Sequence[bytes | memoryview], suffix: str) -> Path | None:
    """Adds the concatenated parts to the cache. None, with a warning, if the disk is full."""
    try:
        return _stored(directory(), key, parts, suffix)
    except OSError as error:
        _warn_of_full_disk(directory(), (error.strerror or str(error)).lower())
        return None


def _stored(folder: Path, key: bytes, parts: Sequence[bytes | memoryview], suffix: str) -> Path:
    with _created(folder, key, suffix) as (file, paths):
        for part in parts:
            file.writelines(pieces(part))
    return paths[0]


@contextmanager
def create(key: bytes, suffix: str) -> Iterator[BinaryIO]:
    """Opens a file for writing, which becomes that of the key when the block ends without error.

    Raises OSError if it cannot be written.
    """
    with _created(directory(), key, suffix) as (file, _):
        yield file


@contextmanager
def _created(root: Path, key: bytes, suffix: str) -> Iterator[tuple[BinaryIO, list[Path]]]:
    """As `create`; the list has the file's path once the block has ended."""
    global _since_trim
    folder, name = _location(root, key)
    make_folder(folder)
    check_trusted(folder, folder.lstat())
    paths: list[Path] = []

    def named(file: BinaryIO) -> str:
        paths.append(folder / f"{name}{digest(file)}{suffix}")
        return paths[0].name

    # After a crash, the digest tells a damaged file, and waiting for the disk costs 7 ms a kernel.
    with written_whole(folder, named, durable=False) as file:
        yield file, paths
        _since_trim += file.tell()
    if _since_trim >= min(_TRIM_EVERY, limit() // 32):
        _since_trim = 0
        trim(limit(), keep=paths[0])


def limit() -> int:
    """The size limit of the cache in bytes. Raises UsageError if the environment's is not one."""
    chosen = os.environ.get("RELAX_CACHE_BYTES") or str(DEFAULT_BYTES)
    if not chosen.isdecimal():
        raise UsageError(f"RELAX_CACHE_BYTES is '{chosen}'; expects a count of bytes")
    return int(chosen)


def trim(limit: int, keep: Path | None = None, suffix: str = "") -> None:
    """Removes the least recently used files until the rest takes at most `limit` bytes.

    With a `suffix`, considers only files that have it. Keeps files made or used in the last minute,
    since another process may be about to load them.
    """
    entries = _entries(suffix)
    total = sum(size for _, size, _ in entries)
    for used, size, path in sorted(entries):
        if total <= limit or used > time.time_ns() - FRESH_SECONDS * 10**9:
            return
        if path != keep and _last_use(path) == used:
            path.unlink(missing_ok=True)
            total -= size


def _entries(suffix: str) -> list[tuple[int, int, Path]]:
    """Last use (ns), size and path of each file; removes abandoned temporary files."""
    entries = []
    for path in glob.iglob(f"{glob.escape(str(directory()))}/??/*"):
        try:
            status = os.lstat(path)
        except FileNotFoundError:  # another process trims too
            continue
        if path.endswith(UNFINISHED):
            if status.st_mtime < time.time() - ABANDONED_SECONDS:
                Path(path).unlink(missing_ok=True)
        elif path.endswith(suffix):
            entries.append((status.st_mtime_ns, status.st_size, Path(path)))
    return entries


def _last_use(path: Path) -> int | None:
    try:
        return path.lstat().st_mtime_ns
    except FileNotFoundError:
        return None


def clear() -> None:
    """Empties the cache, except for files that other processes are writing."""
    for _, _, path in _entries(""):
        path.unlink(missing_ok=True)


def folder() -> Path:
    """The configured folder of the cache, which need not exist."""
    if chosen := os.environ.get("RELAX_CACHE_DIR"):
        return Path(chosen).expanduser()
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "relax-mlir"


def directory() -> Path:
    """The folder of the cache; a temporary one if that is not writable.

    Raises UsageError if it belongs to somebody else, or others may write to it.
    """
    return _usable(folder())


@lru_cache
def _usable(path: Path) -> Path:
    try:
        make_folder(path)
        resolved = path.resolve(strict=True)  # so that no link can be changed later
        check_trusted(resolved, resolved.stat())
        if os.access(resolved, os.W_OK | os.X_OK):
            return resolved
        reason = "permission denied"
    except (OSError, RuntimeError) as error:  # RuntimeError: a link to itself
        reason = (getattr(error, "strerror", None) or str(error)).lower()
    warnings.warn(
        f"the cache folder '{path}' cannot be written ({reason}): nothing is cached for later runs",
        stacklevel=2,
    )
    return _temporary()


@lru_cache  # once per folder and reason
def _warn_of_full_disk(path: Path, reason: str) -> None:
    warnings.warn(f"nothing is stored in the cache folder '{path}': {reason}", stacklevel=3)


@lru_cache
def _temporary() -> Path:
    """A folder of this process: loading from a predictable one would not be safe."""
    path = Path(tempfile.mkdtemp(prefix="relax-mlir-"))
    atexit.register(shutil.rmtree, path, ignore_errors=True)
    return path


def _location(root: Path, key: bytes) -> tuple[Path, str]:
    """The folder of a key's file, and the prefix of its name."""
    name = hashlib.sha256(key).hexdigest()
    return root / name[:2], name[2:] + "-"
