"""What every request passes first: the names of the host, origins, keys; and what counts it.

`Host` is checked on loopback, since a page of another site can give its own name this address
(DNS rebinding). Requests of pages of other origins are refused unless they are allowed, so that
none can have a server compute for it, even if it may not read the answer.
"""

import hashlib
import sys
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from http import HTTPStatus

from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from relax_mlir.llm.batching.request import Busy
from relax_mlir.llm.serving.errors import ApiError, as_api_error, unavailable
from relax_mlir.llm.serving.fields import shorten
from relax_mlir.llm.serving.limits import State

OPEN = ("/", "/health")
"""Paths that need no key."""
WHILE_DRAINING = ("/health", "/metrics")
PATHS = (
    *("/", "/health", "/metrics", "/v1/models", "/v1/completions", "/v1/chat/completions"),
    *("/v1/embeddings", "/v1/audio/transcriptions"),
)
"""Those that metrics tell apart."""


class Guard:
    """An application that lets requests pass to another one, or refuses them."""

    def __init__(self, inner: ASGIApp, state: State) -> None:
        self._inner = inner
        self._state = state
        self._running: Counter[str] = Counter()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers one request."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._inner(scope, receive, send)
            return
        began = False

        async def counted(message: Message) -> None:
            nonlocal began
            if message["type"] == "http.response.start":
                began = True
                self._count(scope["path"], message["status"])
            await send(message)

        try:
            scope["begin"] = time.monotonic()
            scope["client_name"] = self._checked(scope)
            client = scope["client_name"]
            with self._counted(client) if scope["method"] == "POST" else nullcontext():
                await self._inner(scope, receive, counted)
        except ApiError as error:
            await error.response(scope, receive, counted)
        except ClientDisconnect:
            self._state.counters.disconnected += 1
        except Exception:  # a bug: the server lives on
            traceback.print_exc(file=sys.stderr)
            if not began:
                status = HTTPStatus.INTERNAL_SERVER_ERROR
                await ApiError(status, "internal error").response(scope, receive, counted)

    @contextmanager
    def _counted(self, client: str) -> Iterator[None]:
        """A request that is being answered; raises ApiError if there are too many."""
        state, own = self._state, self._running[client]
        most = state.limits.requests
        if state.running >= most or own >= (most + 1) // 2:
            raise as_api_error(
                Busy(f"{state.running} requests are being answered, {own} of this client")
            )
        state.running += 1
        self._running[client] += 1
        try:
            yield
        finally:
            state.running -= 1
            self._running[client] -= 1
            if not self._running[client]:
                del self._running[client]

    def _count(self, path: str, status: int) -> None:
        known = path if path in PATHS else "other"
        self._state.counters.responses[known, status] += 1

    def _checked(self, scope: Scope) -> str:
        """The name of the client, whose requests queue together; raises ApiError."""
        headers = Headers(scope=scope)
        path = scope["path"]
        self._check_host(headers.get("host", ""))
        self._check_origin(headers, scope)
        name = scope["client"][0] if scope.get("client") else ""
        if self._state.access.keys and path not in OPEN:
            name = self._check_key(headers.get("authorization", ""))
        if self._state.draining and path not in WHILE_DRAINING:
            error = unavailable("the server is shutting down", "shutting_down", seconds=5)
            error.headers["Connection"] = "close"
            raise error
        return name

    def _check_host(self, host: str) -> None:
        hosts = self._state.access.hosts
        if hosts is None or _without_port(host).lower() in hosts:
            return
        raise ApiError(
            HTTPStatus.FORBIDDEN,
            f"the host '{shorten(host)}' is none of this server's names: {', '.join(hosts)}",
            code="wrong_host",
        )

    def _check_origin(self, headers: Headers, scope: Scope) -> None:
        origin = headers.get("origin")
        if origin is None or {origin, "*"} & set(self._state.access.origins):
            return
        host = headers.get("host", "").lower()
        if not host or origin.lower().partition("://")[2] != host:
            raise ApiError(
                HTTPStatus.FORBIDDEN,
                f"pages of the origin '{shorten(origin)}' may not use this server",
                code="wrong_origin",
            )

    def _check_key(self, authorization: str) -> str:
        scheme, _, key = authorization.partition(" ")
        if scheme.lower() != "bearer" or not self._state.access.admits(key.strip()):
            what = "is wrong" if key else "is missing"
            raise ApiError(
                HTTPStatus.UNAUTHORIZED,
                f"the API key {what}; expects the header 'Authorization: Bearer KEY'",
                code="invalid_api_key",
                headers={"WWW-Authenticate": "Bearer"},
            )
        return hashlib.sha256(key.encode()).hexdigest()


def _without_port(host: str) -> str:
    name, colon, port = host.rpartition(":")
    return name if colon and port.isdigit() else host
