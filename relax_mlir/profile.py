"""Where the time of a call goes: each kernel with its bytes, operations and share of the roof.

    call = exe["main"].bind(x, weight)
    found = profile(call, threads=1)
    print(table(found, this_machine().at(1)))
    write_trace("trace.json", [found], this_machine())    # for chrome://tracing or Perfetto

Bytes and operations are what the compiler counted (`analysis.work`): the least that a kernel has to
move and do, so a rate is a lower bound of what the machine did. The roof is the time that the
machine needs at least, for the bytes or for the operations, whichever takes longer; data that the
caches hold makes a kernel faster than its roof.
"""

import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

from relax_mlir.atomic_files import write_atomically
from relax_mlir.errors import ExecutionError
from relax_mlir.executable import BoundCall, Executable
from relax_mlir.machine.limits import Limits, Machine
from relax_mlir.symbolic import parse, solve

ROUNDS = 5
CAPACITY = 1 << 16
"""Spans that are recorded of a call."""


@dataclass(frozen=True)
class Span:
    """One call of a kernel; `begin` and `seconds` are counted from the start of the whole call.

    `bytes` and `flops` are None where the compiler could not tell them. `unit` is the arithmetic
    of the kernel's products: "f32", "bf16" or "int8".
    """

    kernel: str
    begin: float
    seconds: float
    bytes: int | None
    flops: int | None
    unit: str

    def roof(self, limits: Limits) -> float:
        """The least time that the machine needs, in seconds."""
        peak = limits.peak(self.unit) or limits.f32
        return max((self.bytes or 0) / limits.bandwidth, (self.flops or 0) / peak)


@dataclass(frozen=True)
class Profile:
    """The fastest of some calls: its time from the caller's view, and its kernels in order."""

    name: str
    threads: int
    seconds: float
    spans: tuple[Span, ...]

    @property
    def gaps(self) -> float:
        """Seconds in which no kernel ran: checks, host code, and recording itself."""
        return self.seconds - sum(span.seconds for span in self.spans)

    def kernels(self) -> dict[str, list[Span]]:
        """The calls of each kernel, the kernel that took longest first."""
        calls: dict[str, list[Span]] = {}
        for span in self.spans:
            calls.setdefault(span.kernel, []).append(span)
        return dict(sorted(calls.items(), key=lambda item: -_seconds(item[1])))


def _seconds(spans: Sequence[Span]) -> float:
    return sum(span.seconds for span in spans)


def profile(
    call: BoundCall, name: str = "", threads: int | None = None, rounds: int = ROUNDS
) -> Profile:
    """Runs a prepared call once to warm up, then `rounds` times; returns the fastest.

    Raises ExecutionError as `BoundCall.run` does.
    """
    function, executable = call.function, call.function.executable
    threads = executable.threads if threads is None else threads
    return record(
        executable,
        function.name,
        lambda: call.run(threads),
        symbol_values(call),
        name or function.name,
        threads,
        rounds,
    )


def record(
    executable: Executable,
    function: str,
    work: Callable[[], object],
    symbols: Mapping[str, int],
    name: str,
    threads: int,
    rounds: int = ROUNDS,
    before: Callable[[], object] = lambda: None,
) -> Profile:
    """As `profile`, for `work` that calls the function once, and `before`, which runs before it.

    `symbols` are the dims of the call. Of loops in the function, as many iterations are recorded as
    fit `CAPACITY`. Raises ExecutionError unless `work` makes exactly one call.
    """
    sites = executable.metadata["functions"][function]["sites"]
    before()
    work()
    best: tuple[int, int, np.ndarray] | None = None
    try:
        for _ in range(rounds):
            before()
            executable.record(CAPACITY)
            begin = time.perf_counter_ns()
            work()
            duration = time.perf_counter_ns() - begin
            if best is None or duration < best[0]:
                best = duration, begin, executable.spans()
    finally:
        executable.record(0)
    assert best is not None, "rounds is 0"
    duration, begin, spans = best
    if len(np.unique(spans["call"])) > 1 or np.any(spans["site"] >= len(sites)):
        raise ExecutionError(f"expects one call of '{function}', but other kernels were recorded")
    described = tuple(_span(sites[span["site"]], span, begin, symbols) for span in spans)
    return Profile(name, threads, duration / 1e9, described)


def _span(site: Mapping, span: np.void, start: int, symbols: Mapping[str, int]) -> Span:
    traffic, flops = (_evaluate(site[key], symbols) for key in ("bytes", "flops"))
    begin, end = int(span["begin"]), int(span["end"])
    unit = site["unit"]
    return Span(site["kernel"], (begin - start) / 1e9, (end - begin) / 1e9, traffic, flops, unit)


def _evaluate(text: str | None, symbols: Mapping[str, int]) -> int | None:
    if text is None:
        return None
    expression = _parsed(text)
    return expression.evaluate(symbols) if expression.symbols <= symbols.keys() else None


_parsed = lru_cache(maxsize=4096)(parse)


def symbol_values(call: BoundCall) -> dict[str, int]:
    """The values of the symbols that the arguments of a call bind."""
    values: dict[str, int] = {}
    leaves = call.function.nesting.flat_arguments(call.values)
    dims = [
        (dim, extent)
        for argument, value in zip(call.function.arguments, leaves, strict=True)
        for dim, extent in zip(
            argument.dims or (), value if argument.kind == "shape" else np.shape(value)
        )
        if isinstance(dim, str)
    ]
    for _ in dims:
        for dim, extent in dims:
            free = [name for name in _parsed(dim).symbols if name not in values]
            solution = solve(_parsed(dim), free[0]) if len(free) == 1 else None
            if solution is not None:
                factor, offset = (part.evaluate(values) for part in solution)
                values[free[0]] = (int(extent) - offset) // factor
    return values


def table(profile: Profile, limits: Limits | None = None, top: int = 10) -> str:
    """The slowest kernels; with the machine's limits, their share of the roof."""
    count = len(profile.spans)
    share = profile.gaps / profile.seconds
    lines = [
        f"{profile.name}: {1e3 * profile.seconds:.3f} ms on {profile.threads} thread(s), {count} "
        f"kernel calls, {1e3 * profile.gaps:.3f} ms ({share:.1%}) between them"
    ]
    head = f"{'kernel':48} {'calls':>5} {'ms':>9} {'share':>6} {'GB/s':>7} {'GFLOP/s':>8}"
    lines.append(head + (f" {'of roof':>8}" if limits else ""))
    kernels = list(profile.kernels().items())
    for name, spans in kernels[:top]:
        lines.append(_row(name, spans, profile.seconds, limits))
    if rest := [span for _, spans in kernels[top:] for span in spans]:
        lines.append(_row(f"{len(kernels) - top} others", rest, profile.seconds, limits))
    lines.append(_row("all", profile.spans, profile.seconds, limits))
    return "\n".join(lines)


def _row(name: str, spans: Sequence[Span], total: float, limits: Limits | None) -> str:
    seconds = _seconds(spans)
    rates = [_rate([span.bytes for span in spans], seconds)]
    rates.append(_rate([span.flops for span in spans], seconds))
    cells = [f"{'?' if rate is None else f'{rate / 1e9:.1f}'}" for rate in rates]
    row = f"{name:48.48} {len(spans):>5} {1e3 * seconds:>9.3f} {seconds / total:>6.1%}"
    row += f" {cells[0]:>7} {cells[1]:>8}"
    if limits is None or not seconds:
        return row
    return row + f" {sum(span.roof(limits) for span in spans) / seconds:>8.0%}"


def _rate(counts: Sequence[int | None], seconds: float) -> float | None:
    known = [count for count in counts if count is not None]
    return sum(known) / seconds if seconds and len(known) == len(counts) else None


def trace(profiles: Sequence[Profile], machine: Machine | None = None) -> dict:
    """The profiles in Chrome's trace format, which Perfetto reads too: a process for each."""
    events: list[dict] = []
    for pid, profile in enumerate(profiles):
        limits = machine.at(profile.threads) if machine else None
        title = f"{profile.name}, {profile.threads} thread(s)"
        naming = {"ph": "M", "pid": pid, "tid": 0, "args": {"name": title}}
        events.append({"name": "process_name", **naming})
        whole = {"ph": "X", "pid": pid, "tid": 0, "ts": 0, "dur": 1e6 * profile.seconds}
        events.append({"name": profile.name, "cat": "call", **whole})
        events += [_event(span, pid, limits) for span in profile.spans]
    return {"traceEvents": events, "displayTimeUnit": "ns"}


def _event(span: Span, pid: int, limits: Limits | None) -> dict:
    details: dict[str, object] = {"bytes": span.bytes, "flops": span.flops, "unit": span.unit}
    for name, count in (("GB/s", span.bytes), ("GFLOP/s", span.flops)):
        rate = _rate([count], span.seconds)
        details[name] = None if rate is None else round(rate / 1e9, 3)
    if limits is not None and span.seconds:
        details["percent of roof"] = round(100 * span.roof(limits) / span.seconds, 1)
    times = {"ts": 1e6 * span.begin, "dur": 1e6 * span.seconds}
    common = {"ph": "X", "cat": "kernel", "pid": pid, "tid": 0}
    return {"name": span.kernel, **common, **times, "args": details}


def write_trace(
    path: str | os.PathLike, profiles: Sequence[Profile], machine: Machine | None = None
) -> None:
    """Writes `trace` to a file; raises OSError if that is not possible."""
    write_atomically(Path(path).absolute(), json.dumps(trace(profiles, machine)).encode())
