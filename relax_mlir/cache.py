"""A cache of compiled files on disk, addressed by what they were made from.

A file's name is the SHA-256 of its key, so nothing in the cache is ever out of date, and a digest
of its bytes, so that a damaged file is as good as none. Files come into being by an atomic rename:
readers and writers in other processes need no locks, and whoever is killed leaves a temporary file
at most. The folder is $RELAX_CACHE_DIR, else `relax-mlir` in $XDG_CACHE_HOME or `~/.cache`; it is
refused if others may write to it, and kept below $RELAX_CACHE_BYTES (2 GiB by default) by dropping
what was not used for longest.
"""

import atexit
import hashlib
import os
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
from relax_mlir.trusted_files import check_trusted, digest, make_folder, open_trusted

Part = bytes | memoryview
DEFAULT_BYTES = 2 << 30
ABANDONED_SECONDS = 3600
"""After which a file that is being written is taken to have no writer any more."""
FRESH_SECONDS = 60
"""For which a file stays whatever the limit: a process that found or made it may be loading it."""
_TRIM_EVERY = 64 << 20
_since_trim = _TRIM_EVERY  # the first file made looks after what earlier processes left


def cached(key: bytes, make: Callable[[], Iterable[Part]], suffix: str = ".so") -> Path:
    """The file made from that key: from the cache if it is there, else of the parts of `make()`.

    `suffix` is part of the key. Where the cache cannot be written, the file is in a folder of this
    process. Raises UsageError if the cache is not safe, or no folder has room for the file.
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
            "RELAX_CACHE_DIR or TMPDIR to a folder with room"
        ) from None


def lookup(key: bytes, suffix: str) -> Path | None:
    """The cached file of that key, marked as used now; None if there is none, or it is damaged.

    Raises UsageError if somebody else may have written it.
    """
    return next((path for path, _ in _found(key, suffix)), None)


def read(key: bytes, suffix: str) -> bytes | None:
    """The bytes of the cached file of that key; otherwise as `lookup`."""
    return next((file.read() for _, file in _found(key, suffix)), None)


def _found(key: bytes, suffix: str) -> Iterator[tuple[Path, BinaryIO]]:
    """Undamaged files of that key, opened at their beginning."""
    folder, name = _place(directory(), key)
    try:
        status = folder.lstat()
        names = [found for found in os.listdir(folder) if found.startswith(name)]
    except (FileNotFoundError, NotADirectoryError):
        return
    check_trusted(folder, status)
    for found in names:
        path = folder / found
        file = open_trusted(path) if found.endswith(suffix) else None
        if file is None:
            continue
        with file:
            # Marked first: a process that makes room looks once more before it removes a file.
            with suppress(PermissionError):  # what the superuser has put there
                os.utime(file.fileno())
            if found == f"{name}{digest(file)}{suffix}" and path.exists():
                yield path, file


def store(key: bytes, parts: Sequence[bytes | memoryview], suffix: str) -> Path | None:
    """Puts a file into the cache: the parts, joined. None, with a warning, if it has no room."""
    try:
        return _stored(directory(), key, parts, suffix)
    except OSError as error:
        _tell_of_full_disk(directory(), (error.strerror or str(error)).lower())
        return None


def _stored(folder: Path, key: bytes, parts: Sequence[bytes | memoryview], suffix: str) -> Path:
    with _created(folder, key, suffix) as (file, places):
        file.writelines(parts)
    return places[0]


@contextmanager
def create(key: bytes, suffix: str) -> Iterator[BinaryIO]:
    """Opens a file to be written, which becomes that of the key when the block ends without error.

    Raises OSError if it cannot be written.
    """
    with _created(directory(), key, suffix) as (file, _):
        yield file


@contextmanager
def _created(root: Path, key: bytes, suffix: str) -> Iterator[tuple[BinaryIO, list[Path]]]:
    """See `create`; the list has the file's path once the block has ended."""
    global _since_trim
    folder, name = _place(root, key)
    make_folder(folder)
    check_trusted(folder, folder.lstat())
    places: list[Path] = []

    def named(file: BinaryIO) -> str:
        places.append(folder / f"{name}{digest(file)}{suffix}")
        return places[0].name

    with written_whole(folder, named) as file:
        yield file, places
        _since_trim += file.tell()
    if _since_trim >= _TRIM_EVERY:
        _since_trim = 0
        trim(limit(), keep=places[0])


def limit() -> int:
    """The bytes that the cache may take. Raises UsageError if the environment says no number."""
    chosen = os.environ.get("RELAX_CACHE_BYTES") or str(DEFAULT_BYTES)
    if not chosen.isdecimal():
        raise UsageError(f"RELAX_CACHE_BYTES is '{chosen}'; expects a number of bytes")
    return int(chosen)


def trim(limit: int, keep: Path | None = None, suffix: str = "") -> None:
    """Drops files, those not used for longest first, until the rest takes at most `limit` bytes.

    With a `suffix`, looks at the files that have it only. What was made or used in the last minute
    stays, since another process may be about to load it.
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
    """Last use (ns), size and path of each file; removes those that writers have left behind."""
    entries = []
    for path in directory().glob("??/*"):
        try:
            status = path.lstat()
        except FileNotFoundError:  # another process trims too
            continue
        if path.name.endswith(UNFINISHED):
            if status.st_mtime < time.time() - ABANDONED_SECONDS:
                path.unlink(missing_ok=True)
        elif path.name.endswith(suffix):
            entries.append((status.st_mtime_ns, status.st_size, path))
    return entries


def _last_use(path: Path) -> int | None:
    try:
        return path.lstat().st_mtime_ns
    except FileNotFoundError:
        return None


def clear() -> None:
    """Empties the cache, but for files that other processes are writing."""
    for _, _, path in _entries(""):
        path.unlink(missing_ok=True)


def folder() -> Path:
    """Where the cache is to be, whether or not there is such a folder."""
    if chosen := os.environ.get("RELAX_CACHE_DIR"):
        return Path(chosen).expanduser()
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "relax-mlir"


def directory() -> Path:
    """The folder of the cache; a temporary one if it cannot be written to.

    Raises UsageError if it belongs to somebody else, or others may write to it.
    """
    return _usable(folder())


@lru_cache
def _usable(path: Path) -> Path:
    try:
        make_folder(path)
        resolved = path.resolve(strict=True)  # nobody can point a link elsewhere from now on
        check_trusted(resolved, resolved.stat())
        if os.access(resolved, os.W_OK | os.X_OK):
            return resolved
        reason = "permission denied"
    except (OSError, RuntimeError) as error:  # RuntimeError: a link to itself
        reason = (getattr(error, "strerror", None) or str(error)).lower()
    warnings.warn(
        f"the cache folder '{path}' cannot be written ({reason}): nothing is kept for later starts",
        stacklevel=2,
    )
    return _temporary()


@lru_cache  # once for each folder and reason
def _tell_of_full_disk(path: Path, reason: str) -> None:
    warnings.warn(f"nothing is kept in the cache folder '{path}': {reason}", stacklevel=3)


@lru_cache
def _temporary() -> Path:
    """A folder for this process alone: one that others can guess would not be safe to load from."""
    path = Path(tempfile.mkdtemp(prefix="relax-mlir-"))
    atexit.register(shutil.rmtree, path, ignore_errors=True)
    return path


def _place(root: Path, key: bytes) -> tuple[Path, str]:
    """The folder of a key's file, and how its name begins."""
    name = hashlib.sha256(key).hexdigest()
    return root / name[:2], name[2:] + "-"
