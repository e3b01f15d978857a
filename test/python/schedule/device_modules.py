"""Modules whose kernels run on the threads of a device that is interpreted."""

from functools import cache
from typing import Any

import relax_mlir
from relax_mlir.bindings import ir
from relax_mlir.codegen.gpu import DeviceKernel, device_kernels
from relax_mlir.dialects import make_context
from relax_mlir.passes import Pipeline
from relax_mlir.pipelines import pipeline


@cache
def built(text: str, target: str, level: int) -> tuple[Any, list[DeviceKernel], list[str]]:
    """A module that runs on a device's threads, its kernels, and the rules that made them."""
    passes, _, _ = pipeline(target, level).rpartition(",relax-to-host")
    with make_context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        Pipeline.parse(f"{passes})").run(module, verify=True)
        rules = [
            op.attributes["tir.schedule"].value
            for op in module.body.operations
            if "tir.schedule" in op.attributes
        ]
        return relax_mlir.interpret(module), list(device_kernels(module.operation)), rules
