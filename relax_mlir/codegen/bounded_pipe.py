"""Pipes to a process that may hang: each read and write has a timeout."""

import io
import os
import select
from typing import IO


class BoundedPipe(io.RawIOBase):
    """One end of a pipe, unbuffered; use it instead of the `pipe` that it wraps.

    Raises TimeoutError if the other end accepts or sends nothing for `seconds`. The time to the
    first byte of an answer has no bound: while `patient` is set, which a read resets, reads wait
    without a timeout.
    """

    def __init__(self, pipe: IO[bytes], seconds: float) -> None:
        self.patient = False
        self._pipe, self._seconds = pipe, seconds

    def fileno(self) -> int:
        """The descriptor of the pipe."""
        return self._pipe.fileno()

    def readable(self) -> bool:
        """Whether it is the end to read from."""
        return self._pipe.readable()

    def writable(self) -> bool:
        """Whether it is the end to write to."""
        return self._pipe.writable()

    def readinto(self, buffer) -> int:
        """Reads the available bytes, at least one; returns 0 at the end."""
        self._wait(select.POLLIN, None if self.patient else self._seconds)
        self.patient = False
        return os.readv(self.fileno(), [buffer])

    def write(self, data) -> int:
        """Waits for room, then writes as much of `data` as fits."""
        self._wait(select.POLLOUT, self._seconds)
        return os.write(self.fileno(), data[: select.PIPE_BUF])

    def close(self) -> None:
        """Closes the pipe."""
        self._pipe.close()
        super().close()

    def _wait(self, event: int, seconds: float | None) -> None:
        waiting = select.poll()
        waiting.register(self.fileno(), event)
        if not waiting.poll(None if seconds is None else 1000 * seconds):
            raise TimeoutError(f"nothing came or went for {seconds:g} seconds")
