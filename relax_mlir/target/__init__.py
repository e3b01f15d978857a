"""Targets of compilation: the CPU of host code, and the devices that kernels run on, if any.

    Target.parse("native")               this machine, with all its features
    Target.parse("x86-64-v3")            a level of the x86-64 psABI
    Target.parse("x86-64-v4+avx512vnni") a level with features added (or taken away by `-`)
    Target.parse("znver4")               a CPU by its name
    replace(target, host=replace(target.host, vector_bytes=16))      with narrower vectors

CPU and feature names are LLVM's. `text.py` has the whole syntax.
"""

from dataclasses import dataclass

from relax_mlir.target.cpu import KNOWN_VECTOR, WASM, Caches, Cpu
from relax_mlir.target.detect import host_flags, lacking
from relax_mlir.target.device import Device
from relax_mlir.target.errors import TargetError
from relax_mlir.target.text import read, spelled

__all__ = [
    "KNOWN_VECTOR",
    "WASM",
    "Caches",
    "Cpu",
    "Device",
    "Target",
    "TargetError",
    "host_flags",
    "lacking",
    "native",
]


@dataclass(frozen=True)
class Target:
    """The CPU of host code, and the devices of kernels; none if they run on the CPU too.

    Tensors are on the first device, if nothing else is said. `parse` reads an equal target from
    `name`: if parts of a target are replaced, its name changes accordingly.

    Raises TargetError for an invalid name or invalid parts.
    """

    name: str
    host: Cpu
    devices: tuple[Device, ...] = ()

    def __post_init__(self) -> None:
        if read(self.name) != (self.host, self.devices):
            object.__setattr__(self, "name", spelled(self.name, self.host, self.devices))

    @property
    def device(self) -> Device | None:
        """The first device, which has the tensors that functions take and return; None: the CPU."""
        return self.devices[0] if self.devices else None

    @staticmethod
    def parse(text: str) -> "Target":
        """The target of a name; raises TargetError with the accepted names if it is unknown."""
        return Target(text.strip(), *read(text.strip()))

    def __str__(self) -> str:
        return self.name


def native() -> Target:
    """This machine; raises TargetError if it is not supported."""
    return Target.parse("native")
