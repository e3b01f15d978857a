"""Addresses of elements of flat buffers.

Source: Intel 64 and IA-32 Architectures Optimization Reference Manual (micro-op fusion).
"""

from relax_mlir.bindings import arith, ir, llvm, memref
from relax_mlir.schedule.build.loops import Index, add, mul, value


def address(buffer: ir.Value, at: Index) -> Index:
    """The address of an element of a flat buffer, as an index."""
    size = ir.MemRefType(buffer.type).element_type.width // 8
    return add(memref.extract_aligned_pointer_as_index(buffer), mul(at, size))


def pointer(buffer: ir.Value, at: Index) -> ir.Value:
    """The address of an element of a flat buffer, as a pointer."""
    return llvm.inttoptr(_pointer_type(), arith.index_cast(_i64(), value(address(buffer, at))))


def opaque_address(buffer: ir.Value, at: Index) -> ir.Value:
    """The address of an element as an i64 that LLVM knows nothing about.

    LLVM would fold it into loads with a base and an index. Intel's cores fuse a load into the
    instruction that uses it only if the address is one register plus a constant.
    """
    address_value = arith.index_cast(_i64(), value(address(buffer, at)))
    return llvm.inline_asm(_i64(), [address_value], "", "=r,0")


def clone_address(address_value: ir.Value) -> ir.Value:
    """A copy of the address that LLVM takes for another one: it merges no loads from both."""
    return llvm.inline_asm(_i64(), [address_value], "", "=r,0")


def load_at_address(address_value: ir.Value, offset: int, kind: ir.Type) -> ir.Value:
    """Loads from `offset` bytes after an address, aligned or not."""
    address_value = (
        arith.addi(address_value, arith.constant(_i64(), offset)) if offset else address_value
    )
    return llvm.load(kind, llvm.inttoptr(_pointer_type(), address_value), alignment=1)


def _i64() -> ir.Type:
    return ir.IntegerType.get_signless(64)


def _pointer_type() -> ir.Type:
    return ir.Type.parse("!llvm.ptr")
