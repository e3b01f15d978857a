"""Responses of generation requests: whole, or as a stream of server-sent events.

Both end, and cancel what runs, as soon as the client goes away, the time is over, or the server
stops.

Source: WHATWG HTML, "Server-sent events"; OpenAI API reference, "Streaming".
"""

import asyncio
import time
from collections.abc import Coroutine
from contextlib import suppress
from http import HTTPStatus
from typing import Any, TypeVar

from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from relax_mlir.llm.batching.request import Event
from relax_mlir.llm.serving.answers import Answers
from relax_mlir.llm.serving.endpoints.jobs import Job, Object
from relax_mlir.llm.serving.errors import ApiError, unavailable
from relax_mlir.llm.serving.json_text import dump
from relax_mlir.llm.serving.limits import State

Result = TypeVar("Result")
DONE = b"data: [DONE]\n\n"
LAST_SECONDS = 1.0
"""What a client gets to take the error that ends a stream."""


class Answering(Response):
    """The response to a job, which is run while the response is sent."""

    def __init__(self, job: Job, state: State, begin: float) -> None:
        """`begin` is when the request arrived, by the monotonic clock."""
        super().__init__()
        self._job = job
        self._state = state
        self._begin = begin
        self._started = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Sends the response."""
        work = self._send_stream(send) if self._job.stream else self._send_whole(send)
        try:
            await answered(work, self._state, receive)
        except ApiError as error:
            if not self._started:
                raise
            last = self._send_part(send, b"data: " + dump(error.object) + b"\n\n", more=False)
            with suppress(asyncio.TimeoutError):  # a client that reads nothing gets no error
                await asyncio.wait_for(last, LAST_SECONDS)
        finally:
            self._state.counters.answer.observe(time.monotonic() - self._begin)

    async def _send_whole(self, send: Send) -> None:
        async with self._answers() as answers:
            async for index, event in answers.events():
                self._take(index, event)
        response = Response(dump(self._job.whole()), media_type="application/json")
        await self._start(send, response)
        await self._send_part(send, bytes(response.body), more=False)

    async def _send_stream(self, send: Send) -> None:
        job = self._job
        async with self._answers() as answers:
            headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
            response = Response(headers=headers, media_type="text/event-stream")
            del response.headers["content-length"]
            await self._start(send, response)
            for opening in job.opening_chunks():
                await self._send_event(send, opening)
            async for index, event in answers.events():
                if (chunk := self._take(index, event)) is not None:
                    await self._send_event(send, chunk)
        if (closing := job.closing_chunk()) is not None:
            await self._send_event(send, closing)
        await self._send_part(send, DONE, more=False)

    async def _start(self, send: Send, response: Response) -> None:
        self._started = True
        await send({"type": "http.response.start", "status": 200, "headers": response.raw_headers})

    def _answers(self) -> Answers:
        job = self._job
        assert job.served.engine is not None
        state = self._state
        return Answers(job.served.engine, job.requests, state.lanes.short.executor, state.mailbox)

    def _take(self, index: int, event: Event) -> Object | None:
        """Adds an event to the response; returns its chunk, if it has one."""
        job, counters = self._job, self._state.counters
        if event.tokens and not job.tokens:
            counters.first_token.observe(time.monotonic() - self._begin)
            counters.tokens[job.served.name, "prompt"] += job.prompt_tokens
        counters.tokens[job.served.name, "answer"] += len(event.tokens)
        return job.push(index, event)

    async def _send_event(self, send: Send, event: Object) -> None:
        await self._send_part(send, b"data: " + dump(event) + b"\n\n", more=True)

    async def _send_part(self, send: Send, body: bytes, more: bool) -> None:
        await send({"type": "http.response.body", "body": body, "more_body": more})


async def answered(work: Coroutine[Any, Any, Result], state: State, receive: Receive) -> Result:
    """The result of `work`, unless the client goes, its time is over, or the server stops.

    Raises ClientDisconnect and ApiError then, and cancels it.
    """
    seconds = state.limits.answer_seconds
    status = HTTPStatus.GATEWAY_TIMEOUT
    late = ApiError(status, f"the answer takes more than {seconds:g} s", code="timeout")
    return await unless_over(work, state, seconds, late, receive)


async def unless_over(
    work: Coroutine[Any, Any, Result],
    state: State,
    seconds: float,
    late: ApiError,
    receive: Receive | None = None,
) -> Result:
    """As `answered`, within so many seconds; clients that go are seen if there is a `receive`."""
    task = asyncio.ensure_future(work)
    ends: dict[asyncio.Future[Any], Exception] = {}
    if receive is not None:
        ends[asyncio.ensure_future(_disconnected(receive))] = ClientDisconnect()
    stopped = unavailable("the server has been shut down", "shutting_down", seconds=5)
    ends[asyncio.ensure_future(state.stopped.wait())] = stopped
    try:
        done, _ = await asyncio.wait(
            [task, *ends], timeout=seconds, return_when=asyncio.FIRST_COMPLETED
        )
    finally:
        for each in (*ends, *([task] if not task.done() else [])):
            each.cancel()
        await asyncio.gather(task, *ends, return_exceptions=True)
    if task in done:
        return task.result()
    raise next((error for end, error in ends.items() if end in done), late)


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
