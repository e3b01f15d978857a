"""NUMA nodes of this machine: a process takes one, so that the memory of its threads is near them.

A node is taken by a lock on its folder, which the kernel releases once the process has ended.

Source: Linux, "Documentation/ABI/stable/sysfs-devices-node"; sched_setaffinity(2), flock(2).
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from relax_mlir.errors import ExecutionError

NODES = Path("/sys/devices/system/node")


@contextmanager
def take_node(nodes: Path = NODES) -> Iterator[set[int]]:
    """Binds all threads of this process to the CPUs of a node that no other one has taken.

    Raises ExecutionError if there is none.
    """
    allowed = os.sched_getaffinity(0)
    for folder in sorted(nodes.glob("node[0-9]*")):
        cpus = _cpus((folder / "cpulist").read_text()) & allowed
        if cpus and (lock := _locked(folder)) is not None:
            try:
                for thread in os.listdir("/proc/self/task"):
                    with suppress(ProcessLookupError):  # it has ended
                        os.sched_setaffinity(int(thread), cpus)
                yield cpus
            finally:
                os.close(lock)
            return
    raise ExecutionError(f"no NUMA node in '{nodes}' is free: each replica takes one")


def _locked(folder: Path) -> int | None:
    """A descriptor that holds the lock of a folder; None if another process has it."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        return None
    return descriptor


def _cpus(text: str) -> set[int]:
    """The CPUs of a list such as 0-3,8."""
    ranges = [part.partition("-") for part in text.strip().split(",") if part]
    return {
        index for first, _, last in ranges for index in range(int(first), int(last or first) + 1)
    }
