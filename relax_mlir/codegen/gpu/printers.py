"""Code of devices: for each API, the function that makes the code of a kernel.

def print_text(kernel: DeviceKernel, device: Device) -> bytes
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from relax_mlir import cache
from relax_mlir.bindings import ir
from relax_mlir.fingerprint import compiler_fingerprint
from relax_mlir.target import WASM, Device, Target, TargetError
from relax_mlir.target.device import Api, device_names, split_devices

from .device_kernel import DeviceKernel, device_kernels
from .ptx import assembler, compile_ptx
from .spirv import print_spirv
from .spirv.disassembler import disassemble
from .wgsl import compile_wgsl

Printer = Callable[[DeviceKernel, Device], bytes]


def _as_text(kernel: DeviceKernel, device: Device) -> bytes:
    """The kernel as it is, which the stand-in for a device has interpreted."""
    return str(kernel.module).encode()


def _as_ptx(kernel: DeviceKernel, device: Device) -> bytes:
    text = compile_ptx(kernel, device)
    if device.assembled:
        return assembler.assemble(text, device.arch).code
    return text.encode() + b"\0"


PRINTERS: Mapping[Api, Printer] = {
    "cuda": _as_ptx,
    "gpu": _as_text,
    "vulkan": print_spirv,
    "webgpu": compile_wgsl,
}
READERS: Mapping[Api, Callable[[bytes], str]] = {
    "cuda": lambda code: code.rstrip(b"\0").decode(),
    "gpu": bytes.decode,
    "vulkan": disassemble,
    "webgpu": lambda code: json.loads(code)["code"],
}
"""For each API, the code of a kernel as text for readers."""
RUNTIMES: Mapping[Api, str] = {
    "cuda": "cuda",
    "gpu": "standin",
    "vulkan": "vulkan",
    "webgpu": "webgpu",
}
"""The part of the C runtime for each API: see `runtime.build.DEVICES`."""
SUFFIX = ".device"


def check_device(target: Target) -> None:
    """Raises TargetError if there is no code for a device of a target, or none on its CPU."""
    for device in target.devices:
        _check_device(target, device)
    if target.host.arch == WASM and len(target.devices) > 1:
        raise TargetError(f"code for a page has one device, but '{target}' has several")


def _check_device(target: Target, device: Device) -> None:
    if device.assembled and not assembler.assembler():
        raise TargetError(
            f"kernels of '{device}' are assembled by ptxas, which is not there: "
            f"pip install {assembler.PACKAGE}, or leave '+cubin' out and the driver assembles them"
        )
    is_page = device.api == "webgpu"
    if is_page != (target.host.arch == WASM) and device.api in PRINTERS:
        host, accepted = split_devices(str(target))[0], "wasm32" if is_page else "another CPU"
        raise TargetError(
            f"kernels of '{device}' cannot be launched by code for '{host}'; "
            f"accepted is {accepted} in front of '@'"
        )
    if device.api not in PRINTERS:
        known = ", ".join(PRINTERS)
        raise TargetError(
            f"there is no code generator for '{device.api}' yet, only for {known}: relax-opt "
            "schedules kernels; leave the device out, and they run on the CPU"
        )


def compile_kernel(kernel: DeviceKernel, device: Device) -> bytes:
    """The code of a kernel, from the cache if it is there.

    Raises CompileError, located, if the device cannot run it.
    """
    by = assembler.version() if device.assembled else ""
    key = repr((str(kernel.module), str(device), by, compiler_fingerprint())).encode()
    known = cache.read(key, SUFFIX)
    if known is None:
        known = PRINTERS[device.api](kernel, device)
        cache.store(key, [known], SUFFIX)
    return known


def kernel_texts(module: ir.Module, devices: Sequence[Device]) -> Iterator[str]:
    """The code of each kernel of a module whose launches are outlined, after a line with its name.

    Raises CompileError, located, if its device cannot run one.
    """
    for kernel in device_kernels(module.operation):
        device = devices[device_names(devices).index(kernel.device)]
        own = f" of {device}" if len(devices) > 1 else ""
        text = READERS[device.api](compile_kernel(kernel, replace(device, assembled=False)))
        yield f"// kernel {kernel.name}{own}\n{text}"
