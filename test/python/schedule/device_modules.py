"""Modules whose kernels run on the threads of a device that is interpreted."""

from functools import cache
from typing import Any

import relax_mlir
from relax_mlir.bindings import ir
from relax_mlir.codegen.gpu import DeviceKernel, device_kernels
from relax_mlir.dialects import make_context
from relax_mlir.target import Device
from relax_mlir.testing.outlined import outlined
from relax_mlir.testing.ptx import on_ptx


@cache
def built(text: str, target: str, level: int) -> tuple[Any, list[DeviceKernel], list[str]]:
    """A module that runs on a device's threads, its kernels, and the rules that made them."""
    with make_context(), ir.Location.unknown():
        module = outlined(text, target, level)
        rules = [
            op.attributes["tir.schedule"].value
            for op in module.body.operations
            if "tir.schedule" in op.attributes
        ]
        return relax_mlir.interpret(module), list(device_kernels(module.operation)), rules


@cache
def as_ptx(text: str, target: str) -> Any:
    """The function `main` of a module, whose kernels are interpreted as PTX."""
    with make_context(), ir.Location.unknown():
        return on_ptx(outlined(text, target), Device.parse(target))
