"""Code of devices: kernels apart from the host, each of which a printer of its device takes."""

from .device_kernel import DeviceKernel, device_kernels
from .outline import outline_launches
from .printers import PRINTERS, RUNTIMES, check_device, compile_kernel, kernel_texts
from .table import write_kernels

__all__ = [
    "PRINTERS",
    "RUNTIMES",
    "DeviceKernel",
    "check_device",
    "compile_kernel",
    "device_kernels",
    "kernel_texts",
    "outline_launches",
    "write_kernels",
]
