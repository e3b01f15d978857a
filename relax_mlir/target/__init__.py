"""What code is made for: the CPU that runs it, and a device if kernels are to run there.

    Target.parse("native")               this machine, every feature it has
    Target.parse("x86-64-v3")            a level of the x86-64 psABI
    Target.parse("x86-64-v4+avx512vnni") a level with features added (or taken away by `-`)
    Target.parse("znver4")               a CPU by its name
    replace(target, host=replace(target.host, vector_bytes=16))      with narrower vectors

CPU and feature names are LLVM's. `text.py` has all that a text may say.
"""

from dataclasses import dataclass

from relax_mlir.target.cpu import Caches, Cpu
from relax_mlir.target.detect import host_flags, lacking
from relax_mlir.target.device import Device
from relax_mlir.target.errors import TargetError
from relax_mlir.target.text import read, spelled

__all__ = ["Caches", "Cpu", "Device", "Target", "TargetError", "host_flags", "lacking", "native"]


@dataclass(frozen=True)
class Target:
    """Where host code runs, and where kernels do: on a device, or if that is None, on the host.

    `name` is a text that `parse` reads the same target from: a target that differs from what its
    name says, because its parts were replaced, gets one that says how.

    Raises TargetError for a name that is none, or parts that cannot be.
    """

    name: str
    host: Cpu
    device: Device | None = None

    def __post_init__(self) -> None:
        if read(self.name) != (self.host, self.device):
            object.__setattr__(self, "name", spelled(self.name, self.host, self.device))

    @staticmethod
    def parse(text: str) -> "Target":
        """The target of that name; raises TargetError with the accepted names if there is none."""
        return Target(text.strip(), *read(text.strip()))

    def __str__(self) -> str:
        return self.name


def native() -> Target:
    """This machine; raises TargetError if code cannot be made for it."""
    return Target.parse("native")
