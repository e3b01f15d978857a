"""The peaks of this machine: bytes read and operations per second.

Its kernels are compiled by this package's own code generator: sums over an array much larger than
the caches, and loops of independent multiply-adds of float32 (FMA), bfloat16 (in tile registers by
`tdpbf16ps`, else `vdpbf16ps`) and int8 (`tdpbusd`, else `vpdpbusd`), each where the machine has it.

Bandwidth drifts on shared machines: compare figures of the same minutes.
"""

import mmap
import time
from collections.abc import Sequence

import numpy as np

from relax_mlir.compiler import compile
from relax_mlir.executable import BoundCall
from relax_mlir.schedule.backend import Peaks
from relax_mlir.schedule.backends import backend_of
from relax_mlir.target import Target

from .limits import Limits, Machine, num_cpus, processor_name, save, saved_machine

READ_BYTES = 256 << 20
TASKS_PER_THREAD = 8
HUGE_PAGE = 2 << 20
SECONDS = 0.2  # spent on each figure


def this_machine(refresh: bool = False) -> Machine:
    """The saved limits of this machine, or those that are measured, in some seconds, and saved."""
    known = None if refresh else saved_machine()
    if known is None:
        known = measure_machine()
        save(known)
    return known


def measure_machine(threads: Sequence[int] = (), seconds: float = SECONDS) -> Machine:
    """Measures each limit at each thread count, 1 and all CPUs by default.

    A figure is the best of the calls that `seconds` allow.
    """
    cpus = num_cpus()
    counts = sorted({*threads} or {1, cpus})
    target = Target.parse("native")
    reads = [read_call(huge, target) for huge in (False, True)]
    known = _peaks(target)
    peaks = {unit: peak_call(unit, target, max(counts)) for unit in known.units}
    limits = []
    for count in counts:
        rates = {
            unit: kernel[1] / _best(kernel[0], count, seconds) for unit, kernel in peaks.items()
        }
        read, huge = (READ_BYTES / _best(call, count, seconds) for call in reads)
        f32, bf16, int8 = rates["f32"], rates.get("bf16"), rates.get("int8")
        limits.append(Limits(count, read, huge, f32, bf16, int8))
    instructions = {unit: known.instruction(unit) for unit in known.units}
    return Machine(processor_name(), cpus, tuple(limits), instructions)


def _peaks(target: Target) -> Peaks:
    peaks = backend_of(target).peaks
    assert peaks is not None, "there is nothing to measure devices with"
    return peaks


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
    """A call that reads `READ_BYTES`; the system is advised to use huge pages, or not to."""
    private = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS  # shared memory has no huge pages
    memory = mmap.mmap(-1, READ_BYTES + HUGE_PAGE, flags=private)
    memory.madvise(mmap.MADV_HUGEPAGE if huge else mmap.MADV_NOHUGEPAGE)
    bytes_ = np.frombuffer(memory, np.uint8)
    begin = -bytes_.ctypes.data % HUGE_PAGE
    peaks = _peaks(target)
    array = bytes_[begin : begin + READ_BYTES].view(np.float32).reshape(-1, peaks.row_elements)
    array[:] = 1
    sums = np.empty((len(array), peaks.lanes), np.float32)
    return compile(peaks.reading(), target)["main"].bind(array, results=[sums])


def peak_call(unit: str, target: Target, threads: int) -> tuple[BoundCall, float]:
    """A call that is bound by multiply-adds, and its count of operations.

    It has work for `threads` threads; the unit is one of `Peaks.units`.
    """
    peaks = _peaks(target)
    tasks, lanes = TASKS_PER_THREAD * threads, peaks.lanes
    call = compile(peaks.computing(unit), target)["main"].bind(
        np.full((tasks, lanes), 1e-3, np.float32), results=[np.empty((tasks, lanes), np.float32)]
    )
    return call, tasks * peaks.operations(unit)
