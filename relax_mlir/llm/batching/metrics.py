"""Counts and times of an engine."""

from collections import deque
from dataclasses import dataclass, field

LAST_STEPS = 256


@dataclass
class Counts:
    """What an engine counts.

    `tokens_in` were computed of prompts, again if they were given up; `tokens_reused` were in
    pages already; `tokens_out` were generated. `last_steps` are the seconds of recent steps, the
    latest last.
    """

    requests: int = 0
    failures: int = 0
    tokens_in: int = 0
    tokens_reused: int = 0
    tokens_out: int = 0
    preemptions: int = 0
    steps: int = 0
    step_seconds: float = 0.0
    last_steps: deque[float] = field(default_factory=lambda: deque(maxlen=LAST_STEPS))


@dataclass(frozen=True)
class Metrics:
    """The state of an engine, and what it has counted since its start: see `Counts`.

    `pages_cached` are those that nobody uses, whose contents a later prompt may begin with.
    """

    running: int
    waiting: int
    pages_free: int
    pages_used: int
    pages_cached: int
    requests: int
    failures: int
    tokens_in: int
    tokens_reused: int
    tokens_out: int
    preemptions: int
    steps: int
    step_seconds: float
    last_steps: tuple[float, ...]
