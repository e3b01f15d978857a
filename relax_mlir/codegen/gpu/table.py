"""The table of kernels in a module for a device, `RxKernel` of `runtime/csrc/device/device.h`."""

from relax_mlir.bindings import gpu, ir, llvm
from relax_mlir.dialects.graph import element_bits
from relax_mlir.host.tables import Globals
from relax_mlir.rewriting import walk_ops
from relax_mlir.target import Device

from .device_kernel import DeviceKernel, device_kernels
from .printers import compile_kernel

KERNEL = "struct<(ptr, ptr, ptr, i64, array<4 x i32>)>"


def write_kernels(module: ir.Module, device: Device) -> None:
    """Replaces the kernels of a module by their code, in the table that the runtime has of them.

    Raises CompileError, located, if the device cannot run one.
    """
    with module.context, ir.Location.unknown():
        table = Globals(module.body, "rx_kernel_data")
        rows: list = []
        for kernel in device_kernels(module.operation):
            code = compile_kernel(kernel, device)
            kinds, sizes = kinds_of(kernel), (*kernel.block, kernel.workgroup_bytes)
            name, data = table.string(kernel.name), table.bytes(code)
            rows.append([name, table.string(kinds), data, len(code), sizes])
        table.public("kernels", KERNEL, rows)
        _write_names(module, device)
        for own in walk_ops(module.operation, gpu.GPUModuleOp):
            own.operation.erase()
        if "gpu.container_module" in module.operation.attributes:
            del module.operation.attributes["gpu.container_module"]


def kinds_of(kernel: DeviceKernel) -> str:
    """Two letters for each argument: what it is, and the bytes of an element or of a scalar."""
    return "".join(
        _role(type_, index in kernel.written) + str(_bytes(type_))
        for index, type_ in enumerate(kernel.arguments)
    )


def _role(type_: ir.Type, is_written: bool) -> str:
    if isinstance(type_, ir.MemRefType):
        return "w" if is_written else "r"
    return "i" if isinstance(type_, ir.IndexType) else "s"


def _bytes(type_: ir.Type) -> int:
    element = type_.element_type if isinstance(type_, ir.MemRefType) else type_
    return 8 if isinstance(element, ir.IndexType) else max(1, element_bits(element) // 8)


def _write_names(module: ir.Module, device: Device) -> None:
    """What the runtime knows of the device."""
    at, external = ir.InsertionPoint(module.body), ir.Attribute.parse("#llvm.linkage<external>")
    text = f"{device}\0".encode()
    kind = ir.Type.parse(f"!llvm.array<{len(text)} x i8>")
    i32 = ir.IntegerType.get_signless(32)
    for name, type_, value in (
        ("rx_device_name", kind, ir.StringAttr.get(text)),
        ("rx_device_index_bits", i32, ir.IntegerAttr.get(i32, device.index_bits)),
    ):
        llvm.GlobalOp(type_, name, external, constant=True, value=value, ip=at)
