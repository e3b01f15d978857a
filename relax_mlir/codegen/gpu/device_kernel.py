"""A kernel of a device as printers of PTX, SPIR-V or WGSL take it."""

from collections.abc import Iterator
from dataclasses import dataclass

from relax_mlir.analysis.devices import placed
from relax_mlir.bindings import gpu, ir
from relax_mlir.dialects.graph import element_bits
from relax_mlir.rewriting import alone, walk_ops
from relax_mlir.target.device import GROUP_UNIT

from .disjoint import disjoint_of, written_of


@dataclass(frozen=True)
class DeviceKernel:
    """A kernel that was outlined, by the name of its `gpu.module` and of its function.

    `arguments` are the types that it takes in order: buffers of one dim, scalars, or tensor maps. A
    group has the threads `block`, along x, y and z, and `workgroup_bytes` of memory. `written` are
    the arguments that it stores to, `disjoint` the buffers whose memory no other one has, unless
    both are only read. `device` is its device as programs call it. `module` holds its `gpu.module`
    alone.
    """

    name: str
    arguments: tuple[ir.Type, ...]
    block: tuple[int, int, int]
    workgroup_bytes: int
    written: frozenset[int]
    disjoint: frozenset[int]
    device: str
    module: ir.Module


def device_kernels(module: ir.Operation) -> Iterator[DeviceKernel]:
    """The kernels of a module whose launches are outlined; leaves it unchanged."""
    for own in walk_ops(module, gpu.GPUModuleOp):
        (function,) = walk_ops(own, gpu.GPUFuncOp)
        yield _read(own, function)


def _read(own: gpu.GPUModuleOp, function: gpu.GPUFuncOp) -> DeviceKernel:
    attributes = function.operation.attributes
    kind = ir.FunctionType(ir.TypeAttr(attributes["function_type"]).value)
    x, y, z = ir.DenseI32ArrayAttr(attributes["known_block_size"])
    block = function.operation.regions[0].blocks[0]
    shared = [buffer.type for buffer in list(block.arguments)[len(kind.inputs) :]]
    with own.context, own.operation.location:
        return DeviceKernel(
            name=ir.StringAttr(own.operation.attributes["sym_name"]).value,
            arguments=tuple(kind.inputs),
            block=(x, y, z),
            workgroup_bytes=sum(map(group_bytes, shared)),
            written=written_of(function.operation) & frozenset(range(len(kind.inputs))),
            disjoint=disjoint_of(function.operation),
            device=placed(own),
            module=alone(own),
        )


def group_bytes(kind: ir.Type) -> int:
    """What a buffer takes of the memory of a group, which is dealt out in units."""
    buffer = ir.MemRefType(kind)
    (count,) = buffer.shape
    return -(-count * element_bits(buffer.element_type) // 8 // GROUP_UNIT) * GROUP_UNIT
