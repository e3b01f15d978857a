"""The tables of kernels and devices in a module, as in `runtime/csrc/device/device.h`."""

from collections.abc import Sequence

from relax_mlir.analysis.tensor_maps import is_tensor_map, map_box
from relax_mlir.bindings import gpu, ir, llvm
from relax_mlir.dialects.graph import element_bits
from relax_mlir.host.tables import Field, Globals
from relax_mlir.rewriting import walk_ops
from relax_mlir.target import Device
from relax_mlir.target.device import device_names, displayed_devices, ordinal_of

from .device_kernel import DeviceKernel, device_kernels
from .printers import RUNTIMES, compile_kernel

KERNEL = "struct<(ptr, ptr, ptr, i64, array<6 x i32>)>"
"""RxKernel, with 4 bytes after it."""
DEVICE = "struct<(ptr, ptr, array<2 x i32>)>"
"""RxDevice."""


def write_kernels(module: ir.Module, devices: Sequence[Device]) -> None:
    """Replaces the kernels of a module by their code, in the table that the runtime has of them.

    Raises CompileError, located, if its device cannot run one.
    """
    known = device_names(devices)
    with module.context, ir.Location.unknown():
        table = Globals(module.body, "rx_kernel_data")
        rows: list[Field] = []
        for kernel in device_kernels(module.operation):
            index = known.index(kernel.device)
            code = compile_kernel(kernel, devices[index])
            kinds, sizes = kinds_of(kernel), (*kernel.block, kernel.workgroup_bytes, index, 0)
            name, data = table.string(kernel.name), table.bytes(code)
            rows.append([name, table.string(kinds), data, len(code), sizes])
        table.public("kernels", KERNEL, rows)
        _write_devices(module, devices, table)
        for own in walk_ops(module.operation, gpu.GPUModuleOp):
            own.operation.erase()
        if "gpu.container_module" in module.operation.attributes:
            del module.operation.attributes["gpu.container_module"]


def kinds_of(kernel: DeviceKernel) -> str:
    """Two letters for each argument: what it is, and the bytes of an element or scalar, or dims."""
    return "".join(
        _role(type_, index in kernel.written) + str(_bytes(type_))
        for index, type_ in enumerate(kernel.arguments)
    )


def _role(type_: ir.Type, is_written: bool) -> str:
    if isinstance(type_, ir.MemRefType):
        return "w" if is_written else "r"
    if is_tensor_map(type_):
        return "m"
    return "i" if isinstance(type_, ir.IndexType) else "s"


def _bytes(type_: ir.Type) -> int:
    if is_tensor_map(type_):
        return len(map_box(type_))
    element = type_.element_type if isinstance(type_, ir.MemRefType) else type_
    return 8 if isinstance(element, ir.IndexType) else max(1, element_bits(element) // 8)


def _write_devices(module: ir.Module, devices: Sequence[Device], table: Globals) -> None:
    """What the runtime knows of the devices, and their drivers, which it has."""
    external, at = ir.Attribute.parse("#llvm.linkage<external>"), ir.InsertionPoint(module.body)
    rows: list[Field] = []
    for index, (device, name) in enumerate(zip(devices, displayed_devices(devices))):
        driver = f"rx_driver_{RUNTIMES[device.api]}"
        if all(other.api != device.api for other in devices[:index]):
            kind = ir.Type.parse("!llvm.array<0 x i8>")
            llvm.GlobalOp(kind, driver, external, constant=True, ip=at)
        sizes = (device.index_bits, ordinal_of(devices, index))
        rows.append([driver, table.string(name), sizes])
    table.public("devices", DEVICE, rows)
