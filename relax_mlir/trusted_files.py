"""Files that only this user can have written, and digests that detect damage.

Code is loaded from the cache, so anybody who can write to it runs code as this user. Files that
others own or may write to are refused, except those of the superuser, who can do anything anyway.
"""

import hashlib
import os
import stat
from pathlib import Path
from typing import BinaryIO

from relax_mlir.errors import UsageError

WHOLE_BYTES = 16 << 20
"""Files up to this size are hashed completely: 10 ms at most."""
SAMPLES = 256
SAMPLE_BYTES = 4096
_OTHERS = stat.S_IWGRP | stat.S_IWOTH


def make_folder(path: Path) -> None:
    """Makes a folder and its parents that others cannot write to, whatever the umask is."""
    try:
        path.mkdir(mode=0o700, exist_ok=True)
    except FileNotFoundError:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.mkdir(mode=0o700, exist_ok=True)


def check_trusted(path: Path, status: os.stat_result, kind: str = "cache folder") -> None:
    """Raises UsageError if somebody else may have written `path`."""
    advice = "set RELAX_CACHE_DIR to a folder of your own"
    if status.st_uid not in (os.geteuid(), 0):
        raise UsageError(
            f"the {kind} '{path}' is refused: code is loaded from it, but it belongs to user "
            f"{status.st_uid}, not to you ({os.geteuid()}); {advice}"
        )
    if status.st_mode & _OTHERS:
        raise UsageError(
            f"the {kind} '{path}' is refused: code is loaded from it, but others may write to it "
            f"(mode {stat.S_IMODE(status.st_mode):o}); run 'chmod go-w {path}' if nobody did, or "
            f"{advice}"
        )


def open_trusted(path: Path) -> BinaryIO | None:
    """Opens a file of the cache; None if it does not exist or is not a file.

    Raises UsageError if somebody else may have written it.
    """
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:  # also for a link
        return None
    file = os.fdopen(handle, "rb", buffering=0)
    try:
        status = os.fstat(handle)
        if stat.S_ISREG(status.st_mode):
            check_trusted(path, status, "cache entry")
            return file
    except BaseException:
        file.close()
        raise
    file.close()
    return None


def digest(file: BinaryIO) -> str:
    """A digest that detects whether a file is damaged.

    A hash of all its bytes, or, if it is larger than 16 MiB, of the size and 256 evenly spaced
    samples of 4 KiB: this detects files that are truncated or were not written back to disk.
    """
    handle = file.fileno()
    size = os.fstat(handle).st_size
    result = hashlib.sha256(str(size).encode())
    if size <= WHOLE_BYTES:
        result.update(_read(handle, size, 0))
    else:
        for i in range(SAMPLES):
            offset = i * (size - SAMPLE_BYTES) // (SAMPLES - 1)
            result.update(_read(handle, SAMPLE_BYTES, offset))
    return result.hexdigest()[:32]


def _read(handle: int, size: int, offset: int) -> bytes:
    parts = []
    while size > 0 and (part := os.pread(handle, size, offset)):
        parts.append(part)
        size, offset = size - len(part), offset + len(part)
    return b"".join(parts)
