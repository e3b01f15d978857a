"""Counts of a server and its engines in Prometheus' text format.

Source: Prometheus, "Exposition formats", text format 0.0.4.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
SECONDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300)
"""Upper bounds of the histograms' buckets."""


@dataclass
class Histogram:
    """How many durations were at most each of `SECONDS`."""

    counts: list[int] = field(default_factory=lambda: [0] * (len(SECONDS) + 1))
    total: float = 0.0

    def observe(self, seconds: float) -> None:
        """Adds a duration."""
        self.counts[bisect_left(SECONDS, seconds)] += 1
        self.total += seconds


@dataclass
class Counters:
    """What requests add to."""

    responses: Counter[tuple[str, int]] = field(default_factory=Counter)
    disconnected: int = 0
    tokens: Counter[tuple[str, str]] = field(default_factory=Counter)
    first_token: Histogram = field(default_factory=Histogram)
    answer: Histogram = field(default_factory=Histogram)


def text(counters: Counters, running: int, engines: Mapping[str, Any]) -> str:
    """All metrics; `engines` are the dataclasses of metrics of engines, by model."""
    return "".join(f"{line}\n" for line in [*_of_server(counters, running), *_of_engines(engines)])


def _of_server(counters: Counters, running: int) -> Iterator[str]:
    yield from _family(
        "responses_total",
        "counter",
        "Responses by path and status.",
        [
            ({"path": path, "status": str(status)}, count)
            for (path, status), count in sorted(counters.responses.items())
        ],
    )
    yield from _family(
        "disconnected_total",
        "counter",
        "Requests whose client went away.",
        [({}, counters.disconnected)],
    )
    yield from _family(
        "requests_running", "gauge", "Requests that are being answered.", [({}, running)]
    )
    yield from _family(
        "tokens_total",
        "counter",
        "Tokens of prompts and of answers.",
        [
            ({"model": model, "kind": kind}, count)
            for (model, kind), count in sorted(counters.tokens.items())
        ],
    )
    yield from _histogram("first_token_seconds", "Time to the first token.", counters.first_token)
    yield from _histogram("answer_seconds", "Time of whole answers.", counters.answer)


def _of_engines(engines: Mapping[str, Any]) -> Iterator[str]:
    """A gauge for each value of the engines' metrics."""
    values: dict[str, list[tuple[dict[str, str], float]]] = {}
    for model, metrics in engines.items():
        assert is_dataclass(metrics)
        for each in fields(metrics):
            value = getattr(metrics, each.name)
            if isinstance(value, int | float):
                values.setdefault(each.name, []).append(({"model": model}, value))
    for name, samples in values.items():
        text = name.replace("_", " ").capitalize()
        yield from _family(f"engine_{name}", "gauge", f"{text}, of the engine.", samples)


def _family(
    name: str, kind: str, text: str, samples: Iterable[tuple[Mapping[str, str], float]]
) -> Iterator[str]:
    yield f"# HELP relax_{name} {text}"
    yield f"# TYPE relax_{name} {kind}"
    for labels, value in samples:
        yield f"relax_{name}{_labels(labels)} {value:.12g}"


def _histogram(name: str, text: str, histogram: Histogram) -> Iterator[str]:
    yield f"# HELP relax_{name} {text}"
    yield f"# TYPE relax_{name} histogram"
    total = 0
    for bound, count in zip([*(f"{s:g}" for s in SECONDS), "+Inf"], histogram.counts, strict=True):
        total += count
        yield f'relax_{name}_bucket{{le="{bound}"}} {total}'
    yield f"relax_{name}_sum {histogram.total:.12g}"
    yield f"relax_{name}_count {total}"


def _labels(labels: Mapping[str, str]) -> str:
    if not labels:
        return ""
    pairs = (f'{name}="{_escaped(value)}"' for name, value in labels.items())
    return "{" + ",".join(pairs) + "}"


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
