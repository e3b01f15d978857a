"""Memory of a kernel by address: buffers, memory of a group, and tables.

    memref.load %x[%i] : memref<?xf32>
      ->
    llvm.load (llvm.getelementptr %x[%i] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, f32) : f32

A truth value is a byte, which is zero or not.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial

from relax_mlir.analysis.tensor_maps import is_tensor_map
from relax_mlir.bindings import arith, gpu, ir, llvm, memref, nvgpu
from relax_mlir.codegen.gpu.device_kernel import group_bytes
from relax_mlir.rewriting import walk_ops

from .matrices import copy_by_address, load_by_address, multiply_integers

GENERIC, GLOBAL, SHARED = 0, 1, 3
_ALIGNMENT = 16
STATIC_BYTES = 48 << 10
"""Memory of a group that a kernel may declare; if it needs more, its launch asks for all of it."""
_DYNAMIC_ALIGNMENT, _DYNAMIC_NAME = 1024, "shared"
_IN_BOUNDS = 3
"""The flags of `llvm.getelementptr` that say `inbounds`."""
_DYNAMIC = -(1 << 31)
"""The constant index of `llvm.getelementptr` that stands for an operand."""

_KIND = arith.AtomicRMWKind
_ATOMIC = {
    int(_KIND.addi): llvm.AtomicBinOp.add,
    int(_KIND.maxs): llvm.AtomicBinOp.max,
    int(_KIND.maxu): llvm.AtomicBinOp.umax,
    int(_KIND.mins): llvm.AtomicBinOp.min,
    int(_KIND.minu): llvm.AtomicBinOp.umin,
    int(_KIND.andi): llvm.AtomicBinOp._and,
    int(_KIND.ori): llvm.AtomicBinOp._or,
}


def use_addresses(module: ir.Module, device_module: gpu.GPUModuleOp, kernel: gpu.GPUFuncOp) -> None:
    """Replaces the buffers of the kernel of a module by addresses, in place."""
    addresses = _take_arguments(kernel.operation, device_module)
    declared = partial(_declare, device_module)
    for table in walk_ops(module, memref.GlobalOp):
        declared(table.sym_name.value, table.type_.value, GLOBAL, table.initial_value)
        table.erase()
    for op in walk_ops(kernel, memref.GetGlobalOp):
        with ir.InsertionPoint(op), op.location:
            name = ir.FlatSymbolRefAttr(op.operation.attributes["name"]).value
            addresses[op.result] = llvm.mlir_addressof(_pointer(GLOBAL), name)
    for op in walk_ops(kernel, memref.LoadOp, memref.StoreOp):
        with ir.InsertionPoint(op), op.location:
            _access(op.operation, addresses)
    for op in walk_ops(kernel, memref.AtomicRMWOp):
        with ir.InsertionPoint(op), op.location:
            _update(op, addresses)
    for op in walk_ops(kernel, memref.ExtractAlignedPointerAsIndexOp):
        with ir.InsertionPoint(op), op.location:
            word = llvm.ptrtoint(_integer(32), addresses[op.source])
            op.result.replace_all_uses_with(arith.index_castui(ir.IndexType.get(), word))
            op.operation.erase()
    address = partial(_address_of, addresses)
    for op in walk_ops(kernel, nvgpu.DeviceAsyncCopyOp, nvgpu.LdMatrixOp):
        with ir.InsertionPoint(op), op.location:
            is_copy = isinstance(op, nvgpu.DeviceAsyncCopyOp)
            (copy_by_address if is_copy else load_by_address)(op, address)
    for op in walk_ops(kernel, nvgpu.MmaSyncOp):
        if isinstance(ir.VectorType(op.matrixA.type).element_type, ir.IntegerType):
            with ir.InsertionPoint(op), op.location:
                multiply_integers(op)
    _erase_buffers(kernel.operation, addresses)


def _take_arguments(
    kernel: ir.Operation, device_module: gpu.GPUModuleOp
) -> dict[ir.Value, ir.Value]:
    """Has a kernel take addresses; returns the address of each of its buffers."""
    block = kernel.regions[0].blocks[0]
    old = list(block.arguments)
    count = len(ir.FunctionType(ir.TypeAttr(kernel.attributes["function_type"]).value).inputs)
    addresses: dict[ir.Value, ir.Value] = {}
    taken = []
    for argument in old[:count]:
        is_buffer = isinstance(argument.type, ir.MemRefType)
        kind = _pointer(GLOBAL) if is_buffer else argument.type
        if is_tensor_map(argument.type):
            kind = _pointer(GENERIC)
        new = block.add_argument(kind, kernel.location)
        taken.append(new.type)
        if is_buffer:
            addresses[argument] = new
        elif kind != argument.type:
            _use_map(argument, new)
        else:
            argument.replace_all_uses_with(new)
    with ir.InsertionPoint.at_block_begin(block):
        addresses |= _share(device_module, old[count:])
    kernel.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(taken, []))
    return addresses


def _use_map(argument: ir.Value, address: ir.Value) -> None:
    """Has copies use the address of a map."""
    for cast in [use.owner for use in argument.uses]:
        cast.operation.results[0].replace_all_uses_with(address)
        cast.operation.erase()


def _share(module: gpu.GPUModuleOp, buffers: Sequence[ir.Value]) -> dict[ir.Value, ir.Value]:
    """The addresses of memory of a group: of variables, or all in one that a launch makes."""
    sizes = [group_bytes(buffer.type) for buffer in buffers]
    addresses: dict[ir.Value, ir.Value] = {}
    if sum(sizes) <= STATIC_BYTES:
        for i, buffer in enumerate(buffers):
            _declare(module, f"shared_{i}", buffer.type, SHARED)
            addresses[buffer] = llvm.mlir_addressof(_pointer(SHARED), f"shared_{i}")
        return addresses
    with ir.InsertionPoint.at_block_begin(module.operation.regions[0].blocks[0]):
        llvm.GlobalOp(
            ir.TypeAttr.get(ir.Type.parse("!llvm.array<0 x i8>")),
            _DYNAMIC_NAME,
            ir.Attribute.parse("#llvm.linkage<external>"),
            alignment=_DYNAMIC_ALIGNMENT,
            addr_space=SHARED,
        )
    start, flags = 0, ir.IntegerAttr.get(_integer(32), _IN_BOUNDS)
    base = llvm.mlir_addressof(_pointer(SHARED), _DYNAMIC_NAME)
    for buffer, size in zip(buffers, sizes, strict=True):
        offset, byte = ir.DenseI32ArrayAttr.get([start]), ir.TypeAttr.get(_integer(8))
        addresses[buffer] = llvm.GEPOp(base.type, base, [], offset, byte, flags).res
        start += size
    return addresses


def _erase_buffers(kernel: ir.Operation, buffers: Iterable[ir.Value]) -> None:
    """Erases what a kernel took before, and its tables."""
    block = kernel.regions[0].blocks[0]
    taken = ir.FunctionType(ir.TypeAttr(kernel.attributes["function_type"]).value).inputs
    for op in walk_ops(kernel, memref.GetGlobalOp):
        op.operation.erase()
    for _ in range(len(block.arguments) - len(taken)):
        block.erase_argument(0)
    if "workgroup_attributions" in kernel.attributes:
        del kernel.attributes["workgroup_attributions"]


def _declare(
    module: gpu.GPUModuleOp,
    name: str,
    kind: ir.Type,
    space: int,
    values: ir.Attribute | None = None,
) -> None:
    """Adds a variable for a buffer to a module: a table of `values`, or memory of a group."""
    buffer = ir.MemRefType(kind)
    element, (count,) = _stored(buffer.element_type), buffer.shape
    with ir.InsertionPoint.at_block_begin(module.operation.regions[0].blocks[0]):
        llvm.GlobalOp(
            ir.TypeAttr.get(ir.Type.parse(f"!llvm.array<{count} x {element}>")),
            name,
            ir.Attribute.parse("#llvm.linkage<internal>"),
            constant=values is not None,
            value=values,
            alignment=_ALIGNMENT,
            addr_space=space,
        )


def _access(op: ir.Operation, addresses: dict[ir.Value, ir.Value]) -> None:
    """Replaces a load or store of an element."""
    is_load = op.name == "memref.load"
    buffer, index = op.operands[0 if is_load else 1], op.operands[1 if is_load else 2]
    element = ir.MemRefType(buffer.type).element_type
    stored, address = _stored(element), _address_of(addresses, buffer, index)
    if not is_load:
        value = op.operands[0]
        llvm.store(value if stored == element else arith.extui(stored, value), address)
    else:
        value = llvm.load(stored, address)
        if stored != element:
            value = arith.cmpi(arith.CmpIPredicate.ne, value, arith.constant(stored, 0))
        op.results[0].replace_all_uses_with(value)
    op.erase()


def _update(op: memref.AtomicRMWOp, addresses: dict[ir.Value, ir.Value]) -> None:
    """Replaces an atomic update, which orders no other accesses: a launch has nothing but those."""
    kind = _ATOMIC[ir.IntegerAttr(op.operation.attributes["kind"]).value]
    (index,) = op.indices
    address = _address_of(addresses, op.memref, index)
    llvm.AtomicRMWOp(kind, address, op.value, llvm.AtomicOrdering.monotonic, syncscope="device")
    op.operation.erase()


def _address_of(
    addresses: Mapping[ir.Value, ir.Value], buffer: ir.Value, index: ir.Value
) -> ir.Value:
    """The address of an element of a buffer."""
    base, element = addresses[buffer], _stored(ir.MemRefType(buffer.type).element_type)
    offset = arith.index_cast(_integer(64), index)
    flags = ir.IntegerAttr.get(_integer(32), _IN_BOUNDS)
    constant = ir.DenseI32ArrayAttr.get([_DYNAMIC])
    return llvm.GEPOp(base.type, base, [offset], constant, ir.TypeAttr.get(element), flags).res


def _stored(element: ir.Type) -> ir.Type:
    """The type of an element in memory."""
    if isinstance(element, ir.IndexType):
        return _integer(64)
    return _integer(8) if element == _integer(1) else element


def _integer(bits: int) -> ir.Type:
    return ir.IntegerType.get_signless(bits)


def _pointer(space: int) -> ir.Type:
    return ir.Type.parse(f"!llvm.ptr<{space}>" if space else "!llvm.ptr")
