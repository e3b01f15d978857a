"""Connections that cost a server little, whatever clients do with them.

Each has a time for the head of a request, for the rest, and for the next request to come; then it
is cut, even if what was sent to it was never read. There are so many at most, and half of them of
one address.

Source: uvicorn, `H11Protocol`; RFC 9112, "HTTP/1.1", section 9.
"""

import asyncio
import resource
from collections import Counter
from collections.abc import Container, Sequence
from typing import Any

import h11
from uvicorn.middleware.proxy_headers import _TrustedHosts
from uvicorn.protocols.http.h11_impl import H11Protocol

from relax_mlir.llm.serving.limits import Limits

IDLE_SECONDS = 30
"""How long a connection stays without requests: longer than clients leave theirs open."""
SPARE_SECONDS = 15.0
"""What comes to the times of the body and of the answer, until a connection is cut."""
SPARE_FILES = 256
"""Descriptors for other things than connections."""
MOST_QUEUED = 1 << 16
"""Bytes of the next requests, which a client may send before it has the answer to one."""
REFUSAL = (
    b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nConnection: close\r\n"
    b"Content-Length: 0\r\n\r\n"
)


class Connection(H11Protocol):
    """A connection within `limits`; `bounded` makes the class for a server.

    `most` are open at once, of which `hosts` counts those of each address, and `exempt` ones may be
    more than half.
    """

    limits: Limits
    most: int
    hosts: Counter[str]
    exempt: Container[str | None]
    _deadline: asyncio.TimerHandle | None = None
    _host: str | None = None

    def connection_made(self, transport: Any) -> None:
        """Takes a connection, or refuses it."""
        super().connection_made(transport)
        host = self.client[0] if self.client else ""
        own = 0 if host in self.exempt else self.hosts[host]
        if len(self.connections) > self.most or own >= (self.most + 1) // 2:
            transport.write(REFUSAL)
            transport.close()
        else:
            self._host = host
            self.hosts[host] += 1
        self._cut_after(self.limits.head_seconds)

    def connection_lost(self, exc: Exception | None) -> None:
        """Forgets a connection."""
        super().connection_lost(exc)
        if self._deadline is not None:
            self._deadline.cancel()
        if self._host is not None:
            self.hosts[self._host] -= 1
            if not self.hosts[self._host]:
                del self.hosts[self._host]

    def data_received(self, data: bytes) -> None:
        """Takes bytes; none after a request that is the last one of its connection."""
        if self.conn.their_state is not h11.MUST_CLOSE:
            super().data_received(data)

    def send_400_response(self, msg: str) -> None:
        """Says that what came is no HTTP, unless an answer has begun: it is the last one then."""
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            super().send_400_response(msg)
        else:
            self.transport.close()

    def handle_events(self) -> None:
        """Handles what has come; reads on while a request is answered, to see its client go."""
        before = self.cycle
        super().handle_events()
        if self.cycle is not before:
            seconds = self.limits.body_seconds + self.limits.answer_seconds
            self._cut_after(seconds + SPARE_SECONDS)
        if self.conn.their_state in (h11.DONE, h11.MUST_CLOSE):
            queued, _ = self.conn.trailing_data
            if len(queued) > MOST_QUEUED:
                self.transport.abort()
            else:
                self.flow.resume_reading()

    def on_response_complete(self) -> None:
        """Waits for the next request, or for the end of the body of one that was refused.

        What of the answer was not read yet has its time before that.
        """
        unread = self.transport.get_write_buffer_size() > 0
        reading = self.limits.answer_seconds if unread else 0.0
        self._cut_after(IDLE_SECONDS + self.limits.head_seconds + reading)
        super().on_response_complete()

    def _cut_after(self, seconds: float) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
        self._deadline = self.loop.call_later(seconds, self.transport.abort)


def bounded(limits: Limits, proxies: Sequence[str] = ()) -> type[Connection]:
    """The class of connections of a server, which counts them; proxies may have more than half.

    They are addresses and networks: those whose headers uvicorn believes.

    There are fewer than `limits` allow if the process may not have so many files.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = limits.connections + SPARE_FILES
    if soft < wanted:
        soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    most = max(min(limits.connections, soft - SPARE_FILES), 2)
    exempt = _TrustedHosts(list(proxies))
    own = {"limits": limits, "most": most, "hosts": Counter(), "exempt": exempt}
    return type("Connection", (Connection,), own)
