"""Who computed what and when, as a trace for chrome://tracing or Perfetto.

    timeline = Timeline()
    a, b = together([lambda: f(x), lambda: g(x)], timeline=timeline)
    timeline.write("trace.json")

Source: the trace event format of Chrome.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from statistics import median

from relax_mlir.atomic_files import write_atomically


@dataclass(frozen=True)
class Span:
    """What ran from `begin` to `end`, in seconds of the monotonic clock, in one of the tracks."""

    track: int
    name: str
    begin: float
    end: float


@dataclass
class Timeline:
    """Spans of tasks or of stages, in the order in which they ended. Threads may share it."""

    spans: list[Span] = field(default_factory=list)

    @contextmanager
    def span(self, track: int, name: str) -> Iterator[None]:
        """Notes what runs inside, whether it fails or not."""
        begin = time.perf_counter()
        try:
            yield
        finally:
            self.spans.append(Span(track, name, begin, time.perf_counter()))

    def overlap(self) -> float:
        """Seconds in which at least two tracks were busy."""
        ends = sorted(edge for span in self.spans for edge in ((span.begin, 1), (span.end, -1)))
        total, busy = 0.0, 0
        for (now, change), (after, _) in pairwise(ends):
            busy += change
            total += after - now if busy > 1 else 0
        return total

    def medians(self) -> dict[str, float]:
        """The median length of the spans of each name, in seconds."""
        lengths: dict[str, list[float]] = {}
        for span in self.spans:
            lengths.setdefault(span.name, []).append(span.end - span.begin)
        return {name: median(each) for name, each in lengths.items()}

    def trace(self) -> dict:
        """The spans in Chrome's format: a thread for each track."""
        start = min((span.begin for span in self.spans), default=0)
        events = [
            {
                "name": span.name,
                "ph": "X",
                "pid": 0,
                "tid": span.track,
                "ts": 1e6 * (span.begin - start),
                "dur": 1e6 * (span.end - span.begin),
            }
            for span in self.spans
        ]
        return {"traceEvents": events, "displayTimeUnit": "ms"}

    def write(self, path: str | os.PathLike) -> None:
        """Writes the trace to a file; raises OSError if that is not possible."""
        write_atomically(Path(path).absolute(), json.dumps(self.trace()).encode())


def name_of(call: Callable[..., object], default: str) -> str:
    """The name of a function, compiled or not."""
    name = getattr(call, "name", None) or getattr(call, "__name__", None)
    return name if isinstance(name, str) else default
