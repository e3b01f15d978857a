"""Prints a kernel of a device as PTX.

The text is of the oldest version of PTX that has the architecture, so that old drivers take it, and
calls nothing: neither libdevice nor a runtime.
"""

import re

from relax_mlir.codegen import llvm
from relax_mlir.codegen.gpu.device_kernel import DeviceKernel
from relax_mlir.errors import CompileError
from relax_mlir.target import Device

from .lower import to_llvm_ir

TRIPLE = "nvptx64-nvidia-cuda"
_CALLED = re.compile(r"\.extern \.func\b[^;]*?([\w$.]+)\s*(?=\(\s*\.param|\(\s*\)|;)")


def compile_ptx(kernel: DeviceKernel, device: Device, level: int = 3) -> str:
    """The PTX text of a kernel, of which it consumes the module; `level` is LLVM's, 0 to 3.

    The entry has the kernel's name and parameters: an address for a buffer, scalars as they are,
    an index as 64 bits. Raises CompileError if an op cannot be lowered, or LLVM refuses.
    """
    text = to_llvm_ir(kernel)
    ptx = llvm.compile_assembly(text, TRIPLE, device.arch, level).decode()
    # LLVM calls an intrinsic that it does not know as a function.
    called = _CALLED.search(ptx)
    if called:
        raise CompileError(f"PTX of kernel '{kernel.name}' would call '{called[1]}'")
    return ptx
