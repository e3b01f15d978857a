"""Connects to a cluster of Ray, or says within seconds why it cannot: Ray itself waits for minutes.

Source: Ray's documentation, `ray.init`; RFC 9113, "HTTP/2", sections 3.4 and 6.5.
"""

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager

from relax_mlir.errors import ExecutionError, UsageError

PROBE_SECONDS = 5.0
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])
"""What a client of HTTP/2 begins with, and a frame of no settings."""
SETTINGS = 4
"""The type of the first frame of a server."""


@contextmanager
def connected(address: str) -> Iterator[None]:
    """A connection to the cluster at an address: HOST:PORT, or ray://HOST:PORT of a client server.

    "auto" is the cluster of the variable RAY_ADDRESS, or of this machine; "local" a new one here.

    Raises UsageError if the address is none, and ExecutionError if there is no cluster.
    """
    chosen = os.environ.get("RAY_ADDRESS") or address if address == "auto" else address
    if chosen not in ("auto", "local"):
        _check(chosen)
    import ray

    try:
        ray.init(chosen, log_to_driver=False, logging_level="ERROR")
    except (ConnectionError, RuntimeError, ValueError, TimeoutError) as error:
        raise _unreachable(address, str(error)) from None
    try:
        yield
    finally:
        ray.shutdown()


def _check(address: str) -> None:
    """Raises UsageError for another form, and ExecutionError if nothing of Ray answers.

    Ray's servers speak gRPC, which begins as HTTP/2 does; with TLS, that they listen is enough.
    """
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if not host or "/" in host or not (port.isascii() and port.isdecimal() and len(port) < 6):
        raise UsageError(
            f"'{address}' is no address of Ray; expects HOST:PORT, ray://HOST:PORT, auto, or local"
        )
    try:
        target = (host.strip("[]"), int(port))
        with socket.create_connection(target, PROBE_SECONDS) as connection:
            if os.environ.get("RAY_USE_TLS", "0").lower() in ("1", "true"):
                return
            connection.sendall(PREFACE)
            frame = connection.recv(9)
    except (OSError, UnicodeError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or str(error) or "it does not answer"
        raise _unreachable(address, reason.lower()) from None
    if len(frame) < 4 or frame[3] != SETTINGS:
        raise _unreachable(address, "what answers there is not Ray")


def _unreachable(address: str, reason: str) -> ExecutionError:
    return ExecutionError(
        f"cannot reach Ray at '{address}': {reason}; expects a cluster, as `ray start --head` "
        "begins one at port 6379, or 'local'"
    )
