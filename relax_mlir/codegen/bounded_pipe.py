"""Pipes to a process that may hang: what it has begun to read or write goes on within a time."""

import io
import os
import select
from typing import IO


class BoundedPipe(io.RawIOBase):
    """One end of a pipe, used instead of the `pipe` it is made of; has no buffer.

    TimeoutError if the other end takes nothing, or sends nothing, for so many seconds. Nobody
    knows how long the first byte of an answer takes: `patient`, which a read makes false, waits for
    it without end.
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
        """Reads what there is, at least a byte, or 0 at the end."""
        self._wait(select.POLLIN, None if self.patient else self._seconds)
        self.patient = False
        return os.readv(self.fileno(), [buffer])

    def write(self, data) -> int:
        """Writes some of `data`: as much as goes in without waiting once there is room."""
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
