"""Lowers the memory between the launches of a kernel to scratch memory of its device.

    %b = memref.alloc(%n) : memref<?xf32>
      ->
    %p = func.call @rx_device_scratch(%device, %bytes), as a memref

Kernels of the host allocate by the same op, from another stack.
"""

from relax_mlir.bindings import arith, builtin, func, ir, llvm, memref
from relax_mlir.rewriting import walk_ops

from .dtypes import byte_width
from .runtime import Runtime


def lower_scratch(function: func.FuncOp, runtime: Runtime, device: int) -> None:
    """Lowers the allocations of a function that launches on a device; buffers have one dim."""
    for op in walk_ops(function, memref.DeallocOp):
        with ir.InsertionPoint(op), op.location:
            address = memref.extract_aligned_pointer_as_index(op.operands[0])
            word = arith.index_cast(ir.IntegerType.get_signless(64), address)
            pointer = llvm.IntToPtrOp(llvm.PointerType.get(), word).res
            types = runtime.results("rx_device_scratch_free")
            func.CallOp(types, "rx_device_scratch_free", [_index(device), pointer])
        op.operation.erase()
    for op in walk_ops(function, memref.AllocOp):
        with ir.InsertionPoint(op), op.location:
            buffer = _allocated(op, runtime, device)
        op.result.replace_all_uses_with(buffer)
        op.operation.erase()


def _allocated(op: memref.AllocOp, runtime: Runtime, device: int) -> ir.Value:
    i64, type_ = ir.IntegerType.get_signless(64), ir.MemRefType(op.result.type)
    sizes = list(op.operands)
    count = arith.index_cast(i64, sizes[0]) if sizes else arith.constant(i64, type_.shape[0])
    bytes_ = arith.muli(count, arith.constant(i64, byte_width(type_.element_type)))
    types = runtime.results("rx_device_scratch")
    pointer = func.CallOp(types, "rx_device_scratch", [_index(device), bytes_])
    kind = ir.Type.parse("!llvm.struct<(ptr, ptr, i64, array<1 x i64>, array<1 x i64>)>")
    fields = (
        (pointer.results[0], [0]),
        (pointer.results[0], [1]),
        (arith.constant(i64, 0), [2]),
        (count, [3, 0]),
        (arith.constant(i64, 1), [4, 0]),
    )
    current = llvm.UndefOp(kind).res
    for value, path in fields:
        current = llvm.InsertValueOp(current, value, path).res
    return builtin.UnrealizedConversionCastOp([type_], [current]).results[0]


def _index(device: int) -> ir.Value:
    return arith.constant(ir.IntegerType.get_signless(32), device)
