"""Code of devices: kernels apart from the host, each of which a printer of its device takes."""

from .device_kernel import DeviceKernel, device_kernels
from .outline import outline_launches

__all__ = ["DeviceKernel", "device_kernels", "outline_launches"]
