"""Runs modules for NVIDIA's devices without one: kernels as PTX, interpreted, the rest as it is.

run = on_ptx(module, Device.parse("cuda:sm_90a"))
run(x)
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from relax_mlir.bindings import ir
from relax_mlir.codegen.gpu import DeviceKernel, device_kernels
from relax_mlir.codegen.gpu.printers import compile_kernel
from relax_mlir.codegen.gpu.ptx import STATIC_BYTES
from relax_mlir.interpreter.module import Interpreted
from relax_mlir.interpreter.ptx import Buffer, Program, parse, run
from relax_mlir.interpreter.simt.tensor_maps import TensorMap
from relax_mlir.target import Device


class PtxKernels:
    """The kernels of a module whose launches are outlined, as PTX; a launch interprets it."""

    def __init__(self, module: ir.Module, device: Device) -> None:
        """Compiles all kernels; raises CompileError where that fails."""
        self.texts: dict[str, str] = {}
        self.launched: list[str] = []
        """The names of kernels, launch by launch."""
        self._kernels: dict[str, tuple[DeviceKernel, Program]] = {}
        for kernel in device_kernels(module.operation):
            text = compile_kernel(kernel, device).rstrip(b"\0").decode()
            self.texts[kernel.name] = text
            self._kernels[kernel.name] = (kernel, parse(text))

    def launch(self, name: str, grid: Sequence[Any], arguments: Sequence[Any]) -> None:
        """Runs a kernel on a grid; raises ValueError for what a device would refuse."""
        self.launched.append(name)
        kernel, program = self._kernels[name]
        buffers = [
            Buffer.of(x, i in kernel.written)
            for i, x in enumerate(arguments)
            if isinstance(x, np.ndarray) and x.ndim
        ]
        buffers += [Buffer.of(x.memory, False) for x in arguments if isinstance(x, TensorMap)]
        size = kernel.workgroup_bytes
        shared = size if size > STATIC_BYTES else 0
        values = list(map(_bits, arguments))
        run(program, name, list(map(int, grid)), kernel.block, values, buffers, shared)


def on_ptx(module: ir.Module, device: Device) -> Callable[..., Any]:
    """The function `main` of a module whose launches are outlined."""
    kernels = PtxKernels(module, device)
    return Interpreted(module, launch=kernels.launch)["main"]


def _bits(x: Any) -> int | TensorMap:
    """An argument of a kernel: an address, bits, or a tensor map."""
    if isinstance(x, TensorMap):
        return x
    if isinstance(x, np.ndarray) and x.ndim:
        return x.ctypes.data
    if isinstance(x, int):
        return x
    value = np.asarray(x)
    return int(value.view(f"u{value.itemsize}"))
