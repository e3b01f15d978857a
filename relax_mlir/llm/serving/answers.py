"""Answers of engines, as they come, for one response.

An engine's events arrive in threads, one for each ticket, and are passed to the event loop.
"""

import asyncio
import threading
from collections.abc import AsyncIterator, Sequence
from concurrent.futures import Executor
from http import HTTPStatus

from relax_mlir.errors import RelaxError
from relax_mlir.llm.batching.request import Event, Request
from relax_mlir.llm.serving.engines import Engine, Ticket
from relax_mlir.llm.serving.errors import ApiError, as_api_error

Arrival = tuple[int, Event | BaseException | None]
"""The index of an answer, and its event, its error, or None after the last event."""


class Answers:
    """The events of several requests, in the order of their arrival.

    A context: leaving it cancels what still runs.
    """

    def __init__(self, engine: Engine, requests: Sequence[Request], executor: Executor) -> None:
        self._engine = engine
        self._requests = requests
        self._executor = executor
        self._tickets: list[Ticket] = []
        self._arrivals: asyncio.Queue[Arrival] = asyncio.Queue()
        self._loop = asyncio.get_running_loop()
        self._closed = False

    async def __aenter__(self) -> "Answers":
        """Submits the requests; raises ApiError, and leaves none running, if one is refused."""
        try:
            await self._loop.run_in_executor(self._executor, self._submit)
        except RelaxError as error:
            raise as_api_error(error) from error
        except asyncio.CancelledError:
            self._closed = True  # the thread may still submit
            raise
        for index, ticket in enumerate(self._tickets):
            threading.Thread(target=self._read, args=(index, ticket), daemon=True).start()
        return self

    async def __aexit__(self, *error: object) -> None:
        self._cancel()

    async def events(self) -> AsyncIterator[tuple[int, Event]]:
        """Each event with the index of its request; raises ApiError if one of them fails."""
        left = len(self._tickets)
        while left:
            index, event = await self._arrivals.get()
            if isinstance(event, BaseException):
                raise event
            if event is None:
                left -= 1
                continue
            if event.finish == "error":
                message = event.error or "the engine failed"
                raise ApiError(HTTPStatus.INTERNAL_SERVER_ERROR, message, code="engine_failed")
            yield index, event

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

    def _read(self, index: int, ticket: Ticket) -> None:
        last: BaseException | None = None
        try:
            for event in ticket:
                self._post((index, event))
        except RelaxError as error:
            last = as_api_error(error)
        except Exception as error:
            last = error
        self._post((index, last))

    def _post(self, arrival: Arrival) -> None:
        try:
            self._loop.call_soon_threadsafe(self._arrivals.put_nowait, arrival)
        except RuntimeError:  # the loop is closed: nobody waits for it
            pass
