"""Answers of engines, as they come, for one response.

Engines tell events in threads of their own, which pass them to the event loop.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Sequence
from concurrent.futures import Executor
from functools import partial
from http import HTTPStatus

from relax_mlir.errors import RelaxError
from relax_mlir.llm.batching.request import Event, Request
from relax_mlir.llm.serving.engines import Engine, Ticket
from relax_mlir.llm.serving.errors import ApiError, as_api_error

Arrival = tuple[int, Event | None]
"""The index of an answer, and its event, or None if it was cancelled."""
FRAME = 1 / 60
"""Seconds between two pictures of most screens: nobody sees text that comes more often."""


class Mailbox:
    """Passes what threads post to queues of an event loop.

    The loop is woken for what is urgent, or comes after a pause; else it looks every `FRAME`
    seconds, so that waking it, and messages of a token each, take no time from decoders.
    """

    def __init__(self) -> None:
        self._posted: deque[tuple[asyncio.Queue[Arrival], Arrival]] = deque()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._is_woken = False
        self._timer: asyncio.TimerHandle | None = None

    def queue(self) -> "asyncio.Queue[Arrival]":
        """A queue of the running loop, always the same one."""
        self._loop = asyncio.get_running_loop()
        return asyncio.Queue()

    def post(self, queue: "asyncio.Queue[Arrival]", arrival: Arrival, is_urgent: bool) -> None:
        """Adds an arrival to a queue, from any thread."""
        assert self._loop is not None
        self._posted.append((queue, arrival))
        if self._is_woken or (self._timer is not None and not is_urgent):
            return
        self._is_woken = True
        try:
            self._loop.call_soon_threadsafe(self._deliver)
        except RuntimeError:  # the loop is closed: nobody waits
            self._posted.clear()

    def _deliver(self) -> None:
        self._is_woken = False  # before it looks: what is posted from now on wakes it again
        while self._posted:
            queue, arrival = self._posted.popleft()
            queue.put_nowait(arrival)
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(FRAME, self._look)

    def _look(self) -> None:
        self._timer = None  # before it looks
        if self._posted:
            self._deliver()


class Answers:
    """The events of several requests, in the order of their arrival.

    A context: leaving it cancels what still runs.
    """

    def __init__(
        self, engine: Engine, requests: Sequence[Request], executor: Executor, mailbox: Mailbox
    ) -> None:
        self._engine = engine
        self._requests = requests
        self._executor = executor
        self._mailbox = mailbox
        self._tickets: list[Ticket] = []
        self._begun: set[int] = set()
        self._arrivals = mailbox.queue()
        self._closed = False

    async def __aenter__(self) -> "Answers":
        """Submits the requests; raises ApiError, and leaves none running, if one is refused."""
        loop = asyncio.get_running_loop()
        try:
            await loop.run_in_executor(self._executor, self._submit)
        except RelaxError as error:
            raise as_api_error(error) from error
        except asyncio.CancelledError:
            self._closed = True  # the thread may still submit
            raise
        for index, ticket in enumerate(self._tickets):
            ticket.listen(partial(self._post, index))
        return self

    async def __aexit__(self, *error: object) -> None:
        self._cancel()

    async def events(self) -> AsyncIterator[tuple[int, Event]]:
        """Events with the indices of their requests; raises ApiError if one of them fails.

        Those of a request that have arrived are one event.
        """
        left = len(self._tickets)
        while left:
            for index, events in (await self._arrived()).items():
                known = [event for event in events if event is not None]
                left -= known != events or known[-1].finish is not None
                parts = [event for event in known if event.finish != "error"]
                if parts:
                    yield index, _joined(parts)
                if parts != known:
                    message = known[-1].error or "the engine failed"
                    raise ApiError(HTTPStatus.INTERNAL_SERVER_ERROR, message, code="engine_failed")

    async def _arrived(self) -> dict[int, list[Event | None]]:
        """The events that have arrived, one at least, by the index of the request."""
        arrivals = [await self._arrivals.get()]
        while not self._arrivals.empty():
            arrivals.append(self._arrivals.get_nowait())
        events: dict[int, list[Event | None]] = {}
        for index, event in arrivals:
            events.setdefault(index, []).append(event)
        return events

    def _submit(self) -> None:
        try:
            for request in self._requests:
                self._tickets.append(self._engine.submit(request))
        except BaseException:
            self._cancel()
            raise
        if self._closed:
            self._cancel()

    def _cancel(self) -> None:
        for ticket in self._tickets:
            ticket.cancel()

    def _post(self, index: int, event: Event | None) -> None:
        is_urgent = index not in self._begun or event is None or event.finish is not None
        self._begun.add(index)
        self._mailbox.post(self._arrivals, (index, event), is_urgent)


def _joined(events: Sequence[Event]) -> Event:
    """Events that follow each other as one."""
    if len(events) == 1:
        return events[0]
    return Event(
        "".join(event.text for event in events),
        tuple(token for event in events for token in event.tokens),
        tuple(each for event in events for each in event.logprobs),
        events[-1].finish,
    )
