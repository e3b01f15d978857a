"""Element types in host code: DLPack codes, types in memory."""

from relax_mlir.bindings import ir
from relax_mlir.runtime.tensors import FLOAT8

_FLOATS = ", ".join(("floats of 16 bits or more", *FLOAT8))
ACCEPTED = f"{_FLOATS}, booleans, and integers of 8, 16, 32 or 64 bits"
INT, UINT, FLOAT, BFLOAT, BOOL = 0, 1, 2, 4, 6


def dlpack_dtype(element: ir.Type) -> tuple[int, int]:
    """Returns DLPack's (code, bits) of an element type; raises ValueError if it has none."""
    if isinstance(element, ir.BF16Type):
        return BFLOAT, 16
    if isinstance(element, ir.F16Type | ir.F32Type | ir.F64Type):
        return FLOAT, element.width
    if str(element) in FLOAT8:
        return FLOAT8[str(element)], 8
    if isinstance(element, ir.IndexType):
        return INT, 64
    if isinstance(element, ir.IntegerType) and element.width == 1:
        return BOOL, 8
    if isinstance(element, ir.IntegerType) and element.width in (8, 16, 32, 64):
        return (UINT if element.is_unsigned else INT), element.width
    raise ValueError(f"has elements of {element}; accepted are {ACCEPTED}")


def byte_width(element: ir.Type) -> int:
    """Bytes of an element in memory; raises ValueError as `dlpack_dtype` does."""
    return dlpack_dtype(element)[1] // 8


def memory_type(element: ir.Type) -> ir.Type:
    """The type of an element in LLVM's memory: a boolean takes a byte, integers are signless.

    Floats of 8 bits are their bits.
    """
    if isinstance(element, ir.IndexType | ir.IntegerType) or str(element) in FLOAT8:
        return ir.IntegerType.get_signless(8 * byte_width(element))
    return element
