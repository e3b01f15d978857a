"""Counts and times of an engine."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Metrics:
    """The state of an engine, and counts since its start.

    `pages_kept` are those that nobody uses, whose contents a later prompt may need. `tokens_in` were
    computed of prompts, and of what was computed before and given up; `tokens_reused` were not,
    since they were in pages; `tokens_out` were generated. `last_steps` are the seconds of recent
    steps, the latest last.
    """

    running: int = 0
    waiting: int = 0
    pages_free: int = 0
    pages_used: int = 0
    pages_kept: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    tokens_reused: int = 0
    preemptions: int = 0
    requests: int = 0
    failures: int = 0
    steps: int = 0
    step_seconds: float = 0.0
    last_steps: tuple[float, ...] = ()
