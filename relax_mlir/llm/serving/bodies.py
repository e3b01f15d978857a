"""Bodies that a server has in memory at once: so many bytes, half of them of one client at most.

JSON takes up to thirty times its bytes once it is parsed, so only a few large bodies are parsed at
a time, and forgotten before others are.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from relax_mlir.llm.batching.request import Busy
from relax_mlir.llm.serving.errors import as_api_error

PARSED = 8
"""Large bodies that are parsed at once."""


class Bodies:
    """The bodies of a server, of up to `most` bytes; `parsed` is passed by large ones."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._bytes: Counter[str] = Counter()
        self.parsed = asyncio.Semaphore(PARSED)

    @contextmanager
    def account(self, client: str) -> Iterator[Callable[[int], None]]:
        """A function that adds bytes to those of a client, until the block ends.

        It raises ApiError if they are too many.
        """
        own = 0

        def add(size: int) -> None:
            nonlocal own
            total = self._bytes.total() + size
            if total > self._most or self._bytes[client] + size > self._most // 2:
                raise as_api_error(Busy(f"bodies of {total} bytes are being read"))
            self._bytes[client] += size
            own += size

        try:
            yield add
        finally:
            self._bytes[client] -= own
            if not self._bytes[client]:
                del self._bytes[client]
