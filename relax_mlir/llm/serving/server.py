"""Runs a server until it is told to end: SIGTERM or SIGINT lets requests finish, a second one not.

Source: uvicorn, "Server Behavior".
"""

import asyncio
import ipaddress
import socket
import sys
import time
from types import FrameType

import uvicorn

from relax_mlir.errors import UsageError
from relax_mlir.llm.serving.app import application
from relax_mlir.llm.serving.connections import IDLE_SECONDS, bounded
from relax_mlir.llm.serving.limits import State

LAST_SECONDS = 2.0
"""What responses that are stopped have to say so."""
TICK = 0.05


def bind(host: str, port: int) -> socket.socket:
    """A socket that listens later, so that nobody waits while models are loaded.

    Raises UsageError if the address is taken, or is none of this machine's.
    """
    if not 0 <= port < 1 << 16:
        raise UsageError(f"port is {port}; expects 0 to 65535")
    try:
        family, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        # The event loop sends small pieces at once only if it sees the protocol of the socket.
        listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise UsageError(f"cannot serve at {host}:{port}: {reason.lower()}") from error
    return listener


def is_loopback(listener: socket.socket) -> bool:
    """Whether only this machine reaches the socket."""
    return ipaddress.ip_address(listener.getsockname()[0]).is_loopback


def url_of(listener: socket.socket) -> str:
    """The address of a bound socket."""
    host, port = listener.getsockname()[:2]
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"


def configured(state: State, trusted_proxies: list[str]) -> uvicorn.Config:
    """The configuration of a server."""
    return uvicorn.Config(
        application(state),
        http=bounded(state.limits, trusted_proxies),
        ws="none",
        lifespan="off",
        log_config=None,
        log_level="critical",  # what clients do wrong is no error; the guard prints bugs
        access_log=False,
        server_header=False,
        proxy_headers=bool(trusted_proxies),
        forwarded_allow_ips=trusted_proxies,
        timeout_keep_alive=IDLE_SECONDS,
        timeout_graceful_shutdown=round(LAST_SECONDS),
    )


def serve(state: State, listener: socket.socket, trusted_proxies: list[str] | None = None) -> None:
    """Serves until a signal ends it; the address goes to standard error once it is ready.

    Addresses of clients are taken from the headers of `trusted_proxies`.
    """
    config = configured(state, trusted_proxies or [])
    url = url_of(listener)
    try:
        Server(config, state, url).run(sockets=[listener])
    finally:
        for served in state.models.values():
            served.close()
        state.lanes.close()


class Server(uvicorn.Server):
    """A server that drains before it ends."""

    def __init__(self, config: uvicorn.Config, state: State, url: str) -> None:
        super().__init__(config)
        self._state = state
        self._url = url
        self._loop: asyncio.AbstractEventLoop | None = None
        self._draining: asyncio.Task[None] | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begins to listen, and says so."""
        self._loop = asyncio.get_running_loop()
        await super().startup(sockets)
        names = ", ".join(self._state.models)
        print(f"relax-llm: serving {names} at {self._url}", file=sys.stderr, flush=True)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Drains at the first signal, and ends at the second.

        The signal is not raised again afterwards, so that the process ends with status 0.
        """
        assert self._loop is not None
        if self._state.draining:
            self._loop.call_soon_threadsafe(self._state.stopped.set)
            return
        self._state.draining = True
        self._loop.call_soon_threadsafe(self._begin_to_drain)

    def _begin_to_drain(self) -> None:
        self._draining = asyncio.ensure_future(self._drain())

    async def _drain(self) -> None:
        """Waits for what runs, as long as it may, then stops it."""
        end = time.monotonic() + self._state.limits.drain_seconds
        while self._state.running and time.monotonic() < end and not self._state.stopped.is_set():
            await asyncio.sleep(TICK)
        self._state.stopped.set()
        end = time.monotonic() + LAST_SECONDS
        while self._state.running and time.monotonic() < end:
            await asyncio.sleep(TICK)
        self.should_exit = True
