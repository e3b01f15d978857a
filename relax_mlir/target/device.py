"""Devices that kernels run on, as data: no driver is needed to compile for one."""

import re
from dataclasses import dataclass
from typing import Literal, get_args

from relax_mlir.target.errors import TargetError

Api = Literal["gpu", "cuda", "vulkan", "webgpu"]
KINDS = ("cpu", *get_args(Api))
"""What a program may be written for: a device by its API, or the CPU."""

ALIGNMENT = 256
"""Bytes of which addresses of tensors on a device are multiples."""
FIRST_WITH_MATRICES = 80
"""The compute capability of NVIDIA's devices from which on warps multiply bf16."""
_ALL = ("f64", "f32", "f16", "bf16", "i64", "i32", "i16", "i8")


@dataclass(frozen=True)
class Device:
    """A device by its API, and the limits of its kernels.

    `subgroup` is the count of invocations in lockstep, `workgroup` the greatest size of a group,
    `shared_bytes` its memory, and `grid` the most groups along an axis. Indices of memory have
    `index_bits`, and memory has numbers of the types `elements`; kernels compute with those of the
    types `computed` too. "gpu" is a device without an API, whose kernels MLIR's own tools read. For
    "vulkan" and "webgpu" these are the guaranteed limits.

    Source: CUDA programming guide, compute capabilities; Vulkan, required limits; WebGPU, limits.
    """

    api: Api
    arch: str
    subgroup: int
    workgroup: int
    shared_bytes: int
    index_bits: int = 64
    elements: tuple[str, ...] = _ALL
    computed: tuple[str, ...] = ()
    grid: int = 65535

    @staticmethod
    def parse(text: str) -> "Device":
        """Parses a device such as "cuda:sm_90" or "webgpu"; TargetError if it is unknown."""
        if text not in _DEVICES:
            raise TargetError(f"unknown device '{text}'; accepted are {', '.join(_DEVICES)}")
        return _DEVICES[text]

    @property
    def multiplies_matrices(self) -> bool:
        """Whether groups of threads multiply matrices of 16 bits, and copy asynchronously."""
        return self.api == "cuda" and int(self.arch.strip("sm_a")) >= FIRST_WITH_MATRICES

    def __str__(self) -> str:
        """The text that `parse` reads."""
        return f"{self.api}:{self.arch}" if self.arch else self.api


_SHARED = {
    **{"75": 64, "80": 163, "86": 99, "87": 163, "89": 99, "90": 227, "90a": 227, "100": 227},
    **{"100a": 227, "103": 227, "103a": 227, "110": 227, "120": 99, "121": 99},
}
"""KiB of memory of a group, by compute capability."""

_DEVICES = {
    str(device): device
    for device in (
        Device("gpu", "", 32, 256, 48 << 10),
        *(Device("cuda", f"sm_{arch}", 32, 1024, kib << 10) for arch, kib in _SHARED.items()),
        Device("vulkan", "", 1, 128, 16 << 10, 32),
        Device("webgpu", "", 1, 256, 16 << 10, 32, _ALL[1:], ("f64",)),
    )
}


def split_device(text: str) -> tuple[str, Device | None]:
    """Splits "native@cuda:sm_90" into the text of the CPU and the device.

    Host code for WebGPU is for WebAssembly, if nothing else is said.
    """
    if re.match(r"(gpu|cuda|vulkan|webgpu)\b", text):
        return "wasm32" if text.startswith("webgpu") else "native", Device.parse(text)
    host, at, device = text.partition("@")
    return host, Device.parse(device) if at else None


HOST, DEVICE = "cpu", "device"
"""Names of the host, and of whatever device a target has."""


def is_device_name(text: str) -> bool:
    """Whether a text names the host, the device of a target, an API or a device of one."""
    return text in (HOST, DEVICE, *get_args(Api)) or text in _DEVICES


def is_on_host(text: str, device: Device | None) -> bool:
    """Whether a name is of the host, for a target that has a device or none.

    Raises TargetError if it names another device.
    """
    if text == HOST or (text == DEVICE and device is None):
        return True
    if device is None or text not in (DEVICE, device.api, str(device)):
        has = "no device" if device is None else f"the device '{device}'"
        accepted = f"'{HOST}' and '{DEVICE}'"
        raise TargetError(
            f"is placed on '{text}', but the target has {has}; accepted are {accepted}"
        )
    return False
