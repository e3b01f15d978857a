"""Threads for work that takes too long for the event loop, apart by how long it may take.

What takes seconds, such as the compilation of grammars, has threads of its own, so that nothing
that is short waits for it.
"""

import asyncio
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any, TypeVar

from relax_mlir.errors import RelaxError
from relax_mlir.llm.batching.request import Busy
from relax_mlir.llm.serving.errors import as_api_error

Result = TypeVar("Result")


class Lane:
    """So many threads, for up to `most` calls, of which one client has half at most."""

    def __init__(self, threads: int, most: int) -> None:
        self.executor = ThreadPoolExecutor(threads)
        self._most = most
        self._calls: Counter[str] = Counter()

    async def run(self, client: str, function: Callable[..., Result], *arguments: Any) -> Result:
        """The result of a call; raises ApiError for a RelaxError, and if too many calls wait.

        A call that has begun goes on if nobody waits for it any more, and still counts.
        """
        total, own = self._calls.total(), self._calls[client]
        if total >= self._most or own >= max(self._most // 2, 1):
            raise as_api_error(Busy(f"{total} requests that take long wait, {own} of this client"))
        self._calls[client] += 1
        loop = asyncio.get_running_loop()
        call = self.executor.submit(function, *arguments)
        call.add_done_callback(lambda _: _in_loop(loop, self._leave, client))
        try:
            return await asyncio.wrap_future(call)
        except RelaxError as error:
            raise as_api_error(error) from error

    def close(self) -> None:
        """Ends the threads once they have nothing to do; what waits is not run."""
        self.executor.shutdown(wait=False, cancel_futures=True)

    def _leave(self, client: str) -> None:
        self._calls[client] -= 1
        if not self._calls[client]:
            del self._calls[client]


def _in_loop(loop: asyncio.AbstractEventLoop, function: Callable[[str], None], value: str) -> None:
    """Calls a function in the thread of a loop, unless that is closed."""
    with suppress(RuntimeError):
        loop.call_soon_threadsafe(function, value)


class Lanes:
    """The lanes of a server.

    `short` renders templates, tokenizes and submits; `grammars` compiles grammars too, before it
    does so; `models` runs encoders, those of images in prompts among them, and models that write
    down speech.
    """

    def __init__(self) -> None:
        self.short = Lane(4, 1 << 20)  # as many as there are requests
        self.grammars = Lane(2, 32)
        self.models = Lane(2, 64)

    def close(self) -> None:
        """Ends all threads."""
        for lane in (self.short, self.grammars, self.models):
            lane.close()
