"""Clients that speak HTTP badly, or go away: bytes on sockets."""

import json
import socket
import struct
from contextlib import contextmanager
from urllib.parse import urlsplit

SECONDS = 20


@contextmanager
def connection(url: str):
    """A socket that is connected to a server."""
    parts = urlsplit(url)
    with socket.create_connection((parts.hostname, parts.port), SECONDS) as connected:
        yield connected


def head(path: str, *lines: str, method: str = "POST") -> bytes:
    """The head of a request with JSON."""
    first = [f"{method} {path} HTTP/1.1", "Host: localhost", "Content-Type: application/json"]
    return "\r\n".join([*first, *lines, "", ""]).encode()


def request(path: str, body: dict) -> bytes:
    """A whole request."""
    text = json.dumps(body).encode()
    return head(path, f"Content-Length: {len(text)}") + text


def received(connected: socket.socket) -> bytes:
    """All that comes until the server closes, or cuts the connection."""
    parts = []
    try:
        while part := connected.recv(1 << 16):
            parts.append(part)
    except ConnectionError:
        pass
    return b"".join(parts)


def reset(connected: socket.socket) -> None:
    """Closes a socket so that the other side gets an error."""
    connected.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connected.close()
