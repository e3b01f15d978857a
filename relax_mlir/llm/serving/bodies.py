"""Bodies that a server has in memory at once: so many bytes, half of them of one client at most.

JSON takes up to thirty times its bytes once it is parsed, so only a few large bodies are parsed at
a time, half of them of one client at most, and forgotten before others are.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from weakref import WeakValueDictionary

from relax_mlir.llm.batching.request import Busy
from relax_mlir.llm.serving.errors import as_api_error

PARSED = 8
"""Large bodies that are parsed at once."""


class Bodies:
    """The bodies of a server, of up to `most` bytes; large ones are parsed in a `turn`."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._bytes: Counter[str] = Counter()
        self._turns = asyncio.Semaphore(PARSED)
        self._own_turns: WeakValueDictionary[str, asyncio.Semaphore] = WeakValueDictionary()

    @asynccontextmanager
    async def turn(self, client: str) -> AsyncIterator[None]:
        """A time at which a large body of a client may be there as values, too."""
        if (own := self._own_turns.get(client)) is None:
            own = self._own_turns[client] = asyncio.Semaphore(PARSED // 2)
        async with own, self._turns:
            yield

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
