"""The peaks of a machine, as figures that are saved on disk; `measure.py` measures them."""

import json
import os
import platform
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from math import inf
from pathlib import Path

from relax_mlir.atomic_files import write_atomically
from relax_mlir.cache import directory
from relax_mlir.trusted_files import open_trusted

MAX_BYTES = 1 << 20
"""More than the file of any machine."""


@dataclass(frozen=True)
class Limits:
    """Rates at some thread count, per second; None if the machine lacks the instruction.

    `read` and `read_huge_pages` are bytes, on ordinary pages and on pages that were advised to be
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
    """A processor, and its limits by thread count.

    `instructions` are those that the peaks of "f32", "bf16" and "int8" were measured with: of tile
    registers where the processor has them.
    """

    processor: str
    cpus: int
    limits: tuple[Limits, ...]
    instructions: Mapping[str, str] = field(default_factory=dict)

    def at(self, threads: int) -> Limits:
        """The limits at so many threads, or at the next smaller count that was measured."""
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
        rates = [rate for each in limits for rate in asdict(each).values() if rate is not None]
        if not rates or not all(type(rate) in (int, float) and 0 < rate < inf for rate in rates):
            raise ValueError("a rate is not a positive number")
        # Older versions, whose peaks were of vectors everywhere, did not write the instructions.
        return Machine(fields["processor"], fields["cpus"], limits, fields["instructions"])


def saved_machine() -> Machine | None:
    """The figures of this machine that `save` wrote, or None."""
    file = open_trusted(_path())
    if file is None:
        return None
    with file:
        text = file.read(MAX_BYTES).decode(errors="replace")
    try:
        known = Machine.from_json(text)
    except (ValueError, KeyError, TypeError, RecursionError):  # written by another version
        return None
    same = (known.processor, known.cpus) == (processor_name(), num_cpus())
    return known if same else None


def save(machine: Machine) -> None:
    """Writes figures to the file that `saved_machine` reads."""
    write_atomically(_path(), machine.to_json().encode())


def _path() -> Path:
    return directory() / "machine.json"


def table(machine: Machine) -> str:
    """The figures as text."""
    lines = [f"{machine.processor}, {machine.cpus} CPUs"]
    lines.append(f"{'threads':>28}" + "".join(f"{each.threads:>12}" for each in machine.limits))
    by = {unit: f" by {name}" for unit, name in machine.instructions.items()}
    rows: dict[str, Callable[[Limits], float | None]] = {
        "read, GB/s": lambda each: each.read,
        "read, huge pages, GB/s": lambda each: each.read_huge_pages,
        f"f32{by.get('f32', '')}, GFLOP/s": lambda each: each.f32,
        f"bf16{by.get('bf16', '')}, GFLOP/s": lambda each: each.bf16,
        f"int8{by.get('int8', '')}, GOP/s": lambda each: each.int8,
    }
    for name, value in rows.items():
        rates = [value(each) for each in machine.limits]
        cells = [f"{'none':>12}" if rate is None else f"{rate / 1e9:>12.1f}" for rate in rates]
        lines.append(f"{name:>28}" + "".join(cells))
    return "\n".join(lines)


def num_cpus() -> int:
    """CPUs that this process may use."""
    return len(os.sched_getaffinity(0))


def processor_name() -> str:
    """The processor's name in `/proc/cpuinfo`."""
    with open("/proc/cpuinfo", encoding="utf-8") as lines:
        names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()
