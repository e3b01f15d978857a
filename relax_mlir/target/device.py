"""Devices that kernels run on, as data: no driver is needed to compile for one."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args

from relax_mlir.target.errors import TargetError

Api = Literal["gpu", "cuda", "vulkan", "webgpu"]
KINDS = ("cpu", *get_args(Api))
"""What a program may be written for: a device by its API, or the CPU."""

ALIGNMENT = 256
"""Bytes of which addresses of tensors on a device are multiples."""
GROUP_UNIT = 16
"""Bytes of which the sizes of buffers in memory of a group are multiples."""
FIRST_WITH_MATRICES = 80
"""The compute capability of NVIDIA's devices from which on warps multiply bf16."""
CUBIN = "cubin"
"""The setting of NVIDIA's devices that has kernels assembled when they are compiled."""
_ALL = ("f64", "f32", "f16", "bf16", "i64", "i32", "i16", "i8")


@dataclass(frozen=True)
class Device:
    """A device by its API, and the limits of its kernels.

    `subgroup` is the count of invocations in lockstep, `workgroup` the greatest size of a group,
    `shared_bytes` its memory, and `grid` the most groups along an axis. Indices of memory have
    `index_bits`, and memory has numbers of the types `elements`; kernels compute with those of the
    types `computed` too. `assembled` kernels are code of NVIDIA's architecture, not PTX. "gpu" is a
    device without an API, whose kernels MLIR's own tools read. For "vulkan" and "webgpu" these are
    the guaranteed limits; "vulkan:16x16x16/16x16x32" is a device whose subgroups multiply
    matrices of f16 and of i8 of these shapes.

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
    assembled: bool = False

    @staticmethod
    def parse(text: str) -> "Device":
        """Parses a device such as "cuda:sm_90" or "webgpu"; TargetError if it is unknown."""
        name, *settings = text.split("+")
        if name not in _DEVICES:
            raise TargetError(f"unknown device '{name}'; accepted are {', '.join(_DEVICES)}")
        device = _DEVICES[name]
        for setting in settings:
            if setting != CUBIN or device.api != "cuda":
                accepted = f"'{CUBIN}'" if device.api == "cuda" else "none"
                raise TargetError(
                    f"unknown setting '{setting}' of device '{name}'; accepted is {accepted}"
                )
        return replace(device, assembled=bool(settings))

    @property
    def multiplies_matrices(self) -> bool:
        """Whether groups of threads multiply matrices of 16 bits, and copy asynchronously."""
        return self.api == "cuda" and int(self.arch.strip("sm_a")) >= FIRST_WITH_MATRICES

    def cooperative(self, element: str) -> tuple[int, int, int] | None:
        """Rows, columns and depth of products of f16 or i8 that subgroups compute; None: of none.

        Sums are of f32 or i32. Subgroups have up to 32 threads.
        """
        shapes = self.arch.split("/") if self.api == "vulkan" and self.arch else []
        shape = dict(zip(("f16", "i8"), shapes)).get(element)
        if shape is None:
            return None
        rows, columns, depth = map(int, shape.split("x"))
        return rows, columns, depth

    @property
    def has_warpgroups(self) -> bool:
        """Whether four warps multiply matrices that are in memory of their group."""
        return self.api == "cuda" and self.arch == "sm_90a"

    @property
    def atomics(self) -> bool:
        """Whether kernels update elements of `i32` and `i64` atomically."""
        return self.api in ("gpu", "cuda")

    def __str__(self) -> str:
        """The text that `parse` reads."""
        name = f"{self.api}:{self.arch}" if self.arch else self.api
        return f"{name}+{CUBIN}" if self.assembled else name


_SHARED = {
    **{"75": 64, "80": 163, "86": 99, "87": 163, "89": 99, "90": 227, "90a": 227, "100": 227},
    **{"100a": 227, "103": 227, "103a": 227, "110": 227, "120": 99, "121": 99},
}
"""KiB of memory of a group, by compute capability."""
_COOPERATIVE = (
    *("8x8x8", "8x8x16", "8x16x16", "16x16x16", "8x8x8/8x8x8", "8x8x16/8x8x32"),
    *("8x16x16/8x16x32", "16x16x16/16x16x16", "16x16x16/16x16x32"),
)
"""Shapes of matrices of f16, and of i8, that drivers report."""

_DEVICES = {
    str(device): device
    for device in (
        Device("gpu", "", 32, 256, 48 << 10),
        *(Device("cuda", f"sm_{arch}", 32, 1024, kib << 10) for arch, kib in _SHARED.items()),
        Device("vulkan", "", 1, 128, 16 << 10, 32),
        *(Device("vulkan", shape, 1, 128, 32 << 10, 32) for shape in _COOPERATIVE),
        Device("webgpu", "", 1, 256, 16 << 10, 32, _ALL[1:], ("f64",)),
    )
}


MOST_DEVICES = 8
"""How many devices a target may have: `RX_MOST_DEVICES` of the runtime."""


def split_devices(text: str) -> tuple[str, tuple[Device, ...]]:
    """Splits "native@cuda:sm_90@vulkan" into the text of the CPU and the devices.

    Host code for WebGPU is for WebAssembly, if nothing else is said. Raises TargetError if a device
    is unknown, or there are too many.
    """
    host, *devices = text.split("@")
    if re.match(r"(gpu|cuda|vulkan|webgpu)\b", host):
        devices.insert(0, host)
        host = "wasm32" if host.startswith("webgpu") else "native"
    if len(devices) > MOST_DEVICES:
        raise TargetError(f"target '{text}' has {len(devices)} devices; at most {MOST_DEVICES}")
    return host, tuple(map(Device.parse, devices))


HOST, DEVICE = "cpu", "device"
"""Names of the host, and of the first device that a target has."""


def is_device_name(text: str) -> bool:
    """Whether a text names the host, a device of a target, an API or a device of one."""
    named = text in (HOST, DEVICE) or _BY_ORDINAL.fullmatch(text) is not None
    return named or text.removesuffix(f"+{CUBIN}") in _DEVICES


_BY_ORDINAL = re.compile(rf"({'|'.join(get_args(Api))})(:\d\d?)?")
"""Such as "cuda", or "cuda:1"."""


def device_names(devices: Sequence[Device]) -> list[str]:
    """What programs call the devices of a target: "device", then "vulkan", "cuda:1", and so on."""
    return [DEVICE if index == 0 else _named(devices, index) for index in range(len(devices))]


def displayed_devices(devices: Sequence[Device]) -> list[str]:
    """What errors call them: as targets do, but each by another name, as "cuda:1 of cuda:sm_80"."""
    names = [str(device) for device in devices]
    for index, device in enumerate(devices):
        if ordinal_of(devices, index):
            of = f" of {device}" if str(device) != device.api else ""
            names[index] = f"{_named(devices, index)}{of}"
    return names


def resolve_device(text: str, devices: Sequence[Device]) -> str:
    """The host, or one of `device_names`, that a name means; raises TargetError if there is none.

    A device is named by its API, by "api:ordinal" among those of its API, or as in the target.
    """
    if text == HOST or (text == DEVICE and not devices):
        return HOST
    for index, (name, device) in enumerate(zip(device_names(devices), devices)):
        ordinal = ordinal_of(devices, index)
        if text in (name, str(device), f"{device.api}:{ordinal}"):
            return name
        if text == device.api and ordinal == 0:
            return name
    has = f"the device{'s' * (len(devices) > 1)} {_listed(devices)}" if devices else "no device"
    known = _listed([HOST, *(device_names(devices) or [DEVICE])])
    raise TargetError(f"is placed on '{text}', but the target has {has}; accepted are {known}")


def _listed(names: Sequence[object]) -> str:
    *others, last = [f"'{name}'" for name in names]
    return f"{', '.join(others)} and {last}" if others else last


def in_names(name: str) -> str:
    """The host or a device in the name of a function: "host", "vulkan", "cuda_1"."""
    return "host" if name == HOST else name.replace(":", "_")


def _named(devices: Sequence[Device], index: int) -> str:
    ordinal, api = ordinal_of(devices, index), devices[index].api
    return f"{api}:{ordinal}" if ordinal else api


def ordinal_of(devices: Sequence[Device], index: int) -> int:
    """How many devices of the same API are before one."""
    return [device.api for device in devices[:index]].count(devices[index].api)
