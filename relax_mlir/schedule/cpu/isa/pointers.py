"""Addresses of elements of flat buffers.

Source: Intel 64 and IA-32 Architectures Optimization Reference Manual (micro-op fusion).
"""

from relax_mlir.bindings import arith, ir, llvm, memref
from relax_mlir.schedule.build.loops import Index, add, mul, value


def address(buffer: ir.Value, at: Index) -> Index:
    """The address of an element of a flat buffer, as a number."""
    size = ir.MemRefType(buffer.type).element_type.width // 8
    return add(memref.extract_aligned_pointer_as_index(buffer), mul(at, size))


def pointer(buffer: ir.Value, at: Index) -> ir.Value:
    """The address of an element of a flat buffer."""
    return llvm.inttoptr(_pointer_type(), arith.index_cast(_i64(), value(address(buffer, at))))


def own_register(buffer: ir.Value, at: Index) -> ir.Value:
    """The address of an element, an i64 that `load_behind` adds constants alone to.

    LLVM adds a base and an index wherever it can. Intel's cores take an instruction that computes
    with what it loads for one if they add a constant to a register, and for two else.
    """
    number = arith.index_cast(_i64(), value(address(buffer, at)))
    return llvm.inline_asm(_i64(), [number], "", "=r,0")


def again(number: ir.Value) -> ir.Value:
    """The same address, which LLVM takes for another one: it loads behind both."""
    return llvm.inline_asm(_i64(), [number], "", "=r,0")


def load_behind(number: ir.Value, offset: int, kind: ir.Type) -> ir.Value:
    """What lies `offset` bytes behind an address, aligned or not."""
    place = arith.addi(number, arith.constant(_i64(), offset)) if offset else number
    return llvm.load(kind, llvm.inttoptr(_pointer_type(), place), alignment=1)


def _i64() -> ir.Type:
    return ir.IntegerType.get_signless(64)


def _pointer_type() -> ir.Type:
    return ir.Type.parse("!llvm.ptr")
