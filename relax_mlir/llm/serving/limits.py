"""How a server is set up: its limits, and who may use it."""

import asyncio
import hashlib
import hmac
from collections.abc import Sequence
from dataclasses import dataclass, field

from relax_mlir.llm.serving.answers import Mailbox
from relax_mlir.llm.serving.bodies import Bodies
from relax_mlir.llm.serving.engines import Served
from relax_mlir.llm.serving.lanes import Lanes
from relax_mlir.llm.serving.metrics import Counters

LOOPBACK = ("localhost", "127.0.0.1", "[::1]")


@dataclass(frozen=True)
class Limits:
    """Bounds of a request: bytes of its body, tokens of its answer, seconds for head and either.

    `requests` are as many as are read and answered at once, half of them of one client at most, and
    `connections` as many as are open, half of them of one address. `all_bytes` are those of bodies
    that are read at once, half of them of one client.
    """

    requests: int = 1024
    connections: int = 4096
    all_bytes: int = 512 << 20
    body_bytes: int = 4 << 20
    audio_bytes: int = 64 << 20
    max_tokens: int = 1 << 31
    head_seconds: float = 15.0
    body_seconds: float = 60.0
    answer_seconds: float = 600.0
    drain_seconds: float = 30.0


@dataclass(frozen=True)
class Access:
    """Who may use a server: holders of a key, by names of this host, pages of some origins.

    No keys let everybody in. `hosts` are the names that requests may have in `Host`, with any port;
    None allows all.
    """

    keys: Sequence[str] = ()
    hosts: Sequence[str] | None = LOOPBACK
    origins: Sequence[str] = ()

    def admits(self, key: str) -> bool:
        """Whether a key is one of the keys; takes the same time for all of them."""
        digest = hashlib.sha256(key.encode()).digest()
        known = [hashlib.sha256(each.encode()).digest() for each in self.keys]
        return any([hmac.compare_digest(digest, each) for each in known])


@dataclass
class State:
    """What the requests of a running server share.

    `draining` refuses new requests, `running` counts those that are read or answered, and
    `stopped` ends them.
    """

    models: dict[str, Served]
    limits: Limits = field(default_factory=Limits)
    access: Access = field(default_factory=Access)
    counters: Counters = field(default_factory=Counters)
    mailbox: Mailbox = field(default_factory=Mailbox)
    draining: bool = False
    running: int = 0
    stopped: asyncio.Event = field(default_factory=asyncio.Event)
    lanes: Lanes = field(default_factory=Lanes)
    bodies: Bodies = field(init=False)

    def __post_init__(self) -> None:
        self.bodies = Bodies(self.limits.all_bytes)

    @property
    def status(self) -> str:
        """What `/health` says: "ok", "draining", or "failed" once an engine has ended."""
        if self.draining:
            return "draining"
        return "ok" if all(each.is_working for each in self.models.values()) else "failed"
