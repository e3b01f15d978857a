"""Kernels for devices: the table of rules, and what devices refuse."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from relax_mlir.bindings import func
from relax_mlir.dialects.tir import PrimFunc
from relax_mlir.schedule.backend import Rule
from relax_mlir.target import Device

from . import nests
from .attention import attention, paged
from .elements import require_elements
from .products import convolution, tiles
from .products.matrix_units import cooperative, tensor_cores, warp_convolution, warpgroups
from .serial import serial
from .sorts import sort

_RULES: tuple[tuple[str, Callable[[PrimFunc, Device, bool], bool]], ...] = (
    ("attention", attention.schedule),
    ("paged_attention", paged.schedule),
    ("warpgroups", warpgroups.schedule),
    ("tensor_cores", tensor_cores.schedule),
    ("cooperative", cooperative.schedule),
    ("products", tiles.schedule),
    ("warp_convolution", warp_convolution.schedule),
    ("convolution", convolution.schedule),
    ("nests", nests.schedule),
    ("sorts", sort.schedule),
    ("serial", serial.schedule),
)


@dataclass(frozen=True)
class DeviceBackend:
    """See `Backend`."""

    device: Device

    @property
    def rules(self) -> Sequence[tuple[str, Rule]]:
        """See `Backend`."""
        return [(name, _bound(rule, self.device)) for name, rule in _RULES]

    @property
    def unread(self) -> int:
        """Sorts, which say what they are, and serial loops."""
        return 2

    @property
    def layouts(self) -> None:
        """Kernels read weights as they are."""

    @property
    def peaks(self) -> None:
        """Nothing measures devices."""

    def tell_instructions(self, kernel: func.FuncOp) -> None:
        """Nothing: no kernel of a device needs the host to prepare."""


def _bound(rule: Callable[[PrimFunc, Device, bool], bool], device: Device) -> Rule:
    def bound(kernel: PrimFunc, fuse: bool) -> bool:
        require_elements(kernel, device)
        return rule(kernel, device, fuse)

    return bound
