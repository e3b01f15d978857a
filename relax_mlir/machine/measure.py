"""What this machine can do at best: bytes read and operations done per second.

The kernels that find it out are made by this package's own code generator, so no other compiler is
needed: sums over an array much larger than the caches, and loops of independent multiply-adds of
float32 (FMA), bfloat16 (in tile registers by `tdpbf16ps`, else `vdpbf16ps`) and int8 (`tdpbusd`,
else `vpdpbusd`), each where the machine has it.

Bandwidth drifts on machines that are shared: compare with figures of the same minutes.
"""

import mmap
import time
from collections.abc import Sequence

import numpy as np

from relax_mlir.compiler import compile
from relax_mlir.executable import BoundCall
from relax_mlir.schedule.backends import backend_of
from relax_mlir.target import Target

from .limits import Limits, Machine, keep, kept_machine, num_cpus, processor_name

READ_BYTES = 256 << 20
TASKS_PER_THREAD = 8
HUGE_PAGE = 2 << 20
SECONDS = 0.2  # spent on each figure


def this_machine(refresh: bool = False) -> Machine:
    """The limits of this machine: those that were kept, or measured in some seconds and kept."""
    known = None if refresh else kept_machine()
    if known is None:
        known = measure_machine()
        keep(known)
    return known


def measure_machine(threads: Sequence[int] = (), seconds: float = SECONDS) -> Machine:
    """Measures each limit at each number of threads, 1 and all CPUs by default.

    A figure is the best of what `seconds` have time for.
    """
    cpus = num_cpus()
    numbers = sorted({*threads} or {1, cpus})
    target = Target.parse("native")
    reads = [read_call(huge, target) for huge in (False, True)]
    known = backend_of(target).peaks
    peaks = {unit: peak_call(unit, target, max(numbers)) for unit in known.units}
    found = []
    for number in numbers:
        rates = {unit: made[1] / _best(made[0], number, seconds) for unit, made in peaks.items()}
        read, huge = (READ_BYTES / _best(call, number, seconds) for call in reads)
        f32, bf16, int8 = rates["f32"], rates.get("bf16"), rates.get("int8")
        found.append(Limits(number, read, huge, f32, bf16, int8))
    instructions = {unit: known.instruction(unit) for unit in known.units}
    return Machine(processor_name(), cpus, tuple(found), instructions)


def _best(call: BoundCall, threads: int, seconds: float) -> float:
    """The shortest time of a call among those of `seconds`, at least three."""
    call.run(threads)
    times: list[float] = []
    while sum(times) < seconds or len(times) < 3:
        begin = time.perf_counter()
        call.run(threads)
        times.append(time.perf_counter() - begin)
    return min(times)


def read_call(huge: bool, target: Target) -> BoundCall:
    """A call that reads `READ_BYTES`; the system is asked to make the pages huge, or not to."""
    private = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS  # shared memory has no huge pages
    memory = mmap.mmap(-1, READ_BYTES + HUGE_PAGE, flags=private)
    memory.madvise(mmap.MADV_HUGEPAGE if huge else mmap.MADV_NOHUGEPAGE)
    bytes_ = np.frombuffer(memory, np.uint8)
    begin = -bytes_.ctypes.data % HUGE_PAGE
    peaks = backend_of(target).peaks
    array = bytes_[begin : begin + READ_BYTES].view(np.float32).reshape(-1, peaks.row_elements)
    array[:] = 1
    sums = np.empty((len(array), peaks.lanes), np.float32)
    return compile(peaks.reading(), target)["main"].bind(array, results=[sums])


def peak_call(unit: str, target: Target, threads: int) -> tuple[BoundCall, float]:
    """A call that does little but multiply and add, and how many operations it does.

    It has work for so many threads; the unit is one of `Peaks.units`.
    """
    peaks = backend_of(target).peaks
    tasks, lanes = TASKS_PER_THREAD * threads, peaks.lanes
    call = compile(peaks.computing(unit), target)["main"].bind(
        np.full((tasks, lanes), 1e-3, np.float32), results=[np.empty((tasks, lanes), np.float32)]
    )
    return call, tasks * peaks.operations(unit)
