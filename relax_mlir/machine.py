"""What this machine can do at best: bytes read and operations done per second.

The kernels that find it out are made by this package's own code generator, so no other compiler is
needed: a sum over an array much larger than the caches, and loops of independent multiply-adds of
float32 (FMA), bfloat16 (`vdpbf16ps`) and int8 (`vpdpbusd`), each where the machine has it.

Bandwidth drifts on machines that are shared: compare with figures of the same minutes.
"""

import json
import mmap
import os
import platform
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from relax_mlir.codegen.cache import directory, write_atomically
from relax_mlir.compiler import compile
from relax_mlir.executable import BoundCall
from relax_mlir.peak_kernels import UNITS, has_unit, operations, peak_module
from relax_mlir.target import Target

READ_BYTES = 256 << 20
ROW = 1 << 14  # elements of one row of the array that is read
TASKS_PER_THREAD = 8
HUGE_PAGE = 2 << 20
SECONDS = 0.2  # spent on each figure


@dataclass(frozen=True)
class Limits:
    """Rates at some number of threads, per second; None where the machine lacks the instruction.

    `read` and `read_huge_pages` are bytes, on ordinary pages and on pages that were asked to be
    huge; `f32`, `bf16` and `int8` are operations, a multiply-add being two.
    """

    threads: int
    read: float
    read_huge_pages: float
    f32: float
    bf16: float | None
    int8: float | None

    @property
    def bandwidth(self) -> float:
        """Bytes per second on the better pages: NumPy asks for huge ones for large arrays."""
        return max(self.read, self.read_huge_pages)

    def peak(self, unit: str) -> float | None:
        """Operations per second of "f32", "bf16" or "int8"."""
        return {"f32": self.f32, "bf16": self.bf16, "int8": self.int8}[unit]


@dataclass(frozen=True)
class Machine:
    """A processor, and its limits by number of threads."""

    processor: str
    cpus: int
    limits: tuple[Limits, ...]

    def at(self, threads: int) -> Limits:
        """The limits at so many threads, or at the next smaller number that was measured."""
        fitting = [limits for limits in self.limits if limits.threads <= threads]
        return max(fitting or self.limits, key=lambda limits: limits.threads)

    def to_json(self) -> str:
        """The figures as JSON text."""
        return json.dumps(asdict(self), indent=2)

    @staticmethod
    def from_json(text: str) -> "Machine":
        """Reads what `to_json` wrote; raises ValueError, KeyError or TypeError if it is not."""
        fields = json.loads(text)
        limits = tuple(Limits(**each) for each in fields["limits"])
        return Machine(fields["processor"], fields["cpus"], limits)


def this_machine(refresh: bool = False) -> Machine:
    """The limits of this machine: from the cache folder, or measured in some seconds and kept."""
    path = _kept()
    if not refresh and path.exists():
        try:
            known = Machine.from_json(path.read_text())
        except (ValueError, KeyError, TypeError):
            known = None  # written by another version: measure again
        if known and (known.processor, known.cpus) == (processor_name(), num_cpus()):
            return known
    machine = measure_machine()
    keep(machine)
    return machine


def keep(machine: Machine) -> None:
    """Puts figures where `this_machine` finds them."""
    write_atomically(_kept(), machine.to_json().encode())


def _kept() -> Path:
    return directory() / "machine.json"


def measure_machine(threads: Sequence[int] = (), seconds: float = SECONDS) -> Machine:
    """Measures each limit at each number of threads, 1 and all CPUs by default.

    A figure is the best of what `seconds` have time for.
    """
    cpus = num_cpus()
    numbers = sorted({*threads} or {1, cpus})
    reads = {huge: _read_call(huge) for huge in (False, True)}
    target = Target.parse("native")
    peaks = {unit: _peak_call(unit, target, max(numbers)) for unit in UNITS}
    found = []
    for number in numbers:
        rates = {
            unit: None if made is None else made[1] / _best(made[0], number, seconds)
            for unit, made in peaks.items()
        }
        read, huge = (READ_BYTES / _best(reads[huge], number, seconds) for huge in (False, True))
        found.append(Limits(number, read, huge, **rates))
    return Machine(processor_name(), cpus, tuple(found))


def table(machine: Machine) -> str:
    """The figures as text."""
    lines = [f"{machine.processor}, {machine.cpus} CPUs"]
    lines.append(f"{'threads':>24}" + "".join(f"{each.threads:>12}" for each in machine.limits))
    rows: dict[str, Callable[[Limits], float | None]] = {
        "read, GB/s": lambda each: each.read,
        "read, huge pages, GB/s": lambda each: each.read_huge_pages,
        "f32, GFLOP/s": lambda each: each.f32,
        "bf16, GFLOP/s": lambda each: each.bf16,
        "int8, GOP/s": lambda each: each.int8,
    }
    for name, value in rows.items():
        rates = [value(each) for each in machine.limits]
        cells = [f"{'none':>12}" if rate is None else f"{rate / 1e9:>12.1f}" for rate in rates]
        lines.append(f"{name:>24}" + "".join(cells))
    return "\n".join(lines)


def num_cpus() -> int:
    """CPUs that this process may use."""
    return len(os.sched_getaffinity(0))


def processor_name() -> str:
    """The processor's name, as Linux tells it."""
    with open("/proc/cpuinfo", encoding="utf-8") as lines:
        names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def _best(call: BoundCall, threads: int, seconds: float) -> float:
    """The shortest time of a call among those of `seconds`, at least three."""
    call.run(threads)
    times: list[float] = []
    while sum(times) < seconds or len(times) < 3:
        begin = time.perf_counter()
        call.run(threads)
        times.append(time.perf_counter() - begin)
    return min(times)


def _read_call(huge: bool) -> BoundCall:
    """A sum over rows of `READ_BYTES`."""
    annotation = f'tensor<?x{ROW}xf32, #graph.shape<["n", {ROW}]>>'
    sums = 'tensor<?xf32, #graph.shape<["n"]>>'
    text = f"""func.func @main(%x: {annotation}) -> {sums} {{
      %y = "graph.sum"(%x) {{axes = array<i64: 1>, keepdims = false}} : ({annotation}) -> {sums}
      return %y : {sums}
    }}"""
    memory = mmap.mmap(-1, READ_BYTES + HUGE_PAGE)
    if huge:
        memory.madvise(mmap.MADV_HUGEPAGE)
    bytes_ = np.frombuffer(memory, np.uint8)
    begin = -bytes_.ctypes.data % HUGE_PAGE
    array = bytes_[begin : begin + READ_BYTES].view(np.float32).reshape(-1, ROW)
    array[:] = 1
    return compile(text)["main"].bind(array, results=[np.empty(len(array), np.float32)])


def _peak_call(unit: str, target: Target, threads: int) -> tuple[BoundCall, float] | None:
    """A call that does little but multiply and add, and how many operations it does."""
    if not has_unit(target, unit):
        return None
    tasks, lanes = TASKS_PER_THREAD * threads, target.f32_lanes
    call = compile(peak_module(unit, lanes), target)["main"].bind(
        np.full((tasks, lanes), 1e-3, np.float32), results=[np.empty((tasks, lanes), np.float32)]
    )
    return call, tasks * operations(unit, lanes)
