"""A file of answers that grows by whole lines, so that a run which was killed can go on.

A line is written at once and is on disk before the next one. What a killed run left of a line is
cut off by the next run, which answers that job again.
"""

import fcntl
import json
import os
from pathlib import Path
from typing import Any

from relax_mlir.errors import UsageError
from relax_mlir.llm.offline.jobs import Id


class Journal:
    """The answers in a file, which this process alone appends to. A context: leaving it closes it.

    `answered` has the ids of the answers that are there. Raises UsageError if the file cannot be
    opened, is no journal, or another process appends to it.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.answered: set[Id] = set()
        try:
            self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            raise UsageError(f"cannot write '{path}': {reason}") from None
        try:
            self._lock()
            self._recover()
        except BaseException:
            os.close(self._file)
            raise

    def append(self, answer: dict[str, Any]) -> None:
        """Adds an answer with its `id`. Raises OSError if the disk is full."""
        line = json.dumps(answer).encode() + b"\n"
        while line:
            line = line[os.write(self._file, line) :]
        os.fsync(self._file)
        self.answered.add(answer["id"])

    def __enter__(self) -> "Journal":
        return self

    def __exit__(self, kind: type[BaseException] | None, *error: object) -> None:
        if kind is not None and os.fstat(self._file).st_size == 0:
            self.path.unlink(missing_ok=True)  # nothing was answered
        os.close(self._file)

    def _lock(self) -> None:
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise UsageError(f"'{self.path}' is being written by another process") from None

    def _recover(self) -> None:
        """Reads the ids of all lines, and cuts off the last one if it has no end."""
        size = 0
        with os.fdopen(os.dup(self._file), "rb") as lines:
            for index, line in enumerate(lines, 1):
                if not line.endswith(b"\n"):
                    os.ftruncate(self._file, size)
                    break
                size += len(line)
                self.answered.add(self._id(line, index))

    def _id(self, line: bytes, index: int) -> Id:
        try:
            id = json.loads(line)["id"]
        except (ValueError, TypeError, KeyError, RecursionError):
            id = None
        if type(id) not in (str, int):
            raise UsageError(
                f"'{self.path}', line {index}: is no answer; expects a file of an earlier run, or "
                "a new one"
            )
        return id
