"""What the calling conventions of library functions ask of operands, and what they return."""

from collections.abc import Callable, Sequence

from relax_mlir.bindings import ir
from relax_mlir.dialects.graph.types import ShapeError, TensorType, dims_differ

DLPACK = "dlpack"
"""The convention of functions that take DLPack descriptors; it asks nothing of operands."""

Rule = Callable[[Sequence[TensorType]], TensorType]


def _gemm(letter: str, transpose_rhs: bool) -> Rule:
    """lhs [rows.., k] times rhs [k, n], or [n, k] if it is transposed: [rows.., n], all f32 or f64.

    BLAS names element types by letters: s is f32, d is f64.
    """

    def rule(operands: Sequence[TensorType]) -> TensorType:
        if len(operands) != 2:
            raise ShapeError(f"expects 2 operands, but got {len(operands)}")
        lhs, rhs = operands
        element = ir.F32Type.get() if letter == "s" else ir.F64Type.get()
        for operand in operands:
            if operand.element != element:
                raise ShapeError(f"expects elements of {element}, but got {operand.element}")
        if lhs.dims is None or len(lhs.dims) < 1 or rhs.dims is None or len(rhs.dims) != 2:
            raise ShapeError(f"expects ranks of at least 1 and of 2, but got '{lhs}' and '{rhs}'")
        *rows, k = lhs.dims
        n, depth = rhs.dims if transpose_rhs else reversed(rhs.dims)
        if dims_differ(k, depth):
            raise ShapeError(f"contracts dim {k} of lhs with dim {depth} of rhs")
        return TensorType((*rows, n), lhs.element)

    return rule


RULES: dict[str, Rule] = {
    f"cblas_{letter}gemm_{kind}": _gemm(letter, transpose_rhs=kind == "nt")
    for letter in "sd"
    for kind in ("nn", "nt")
}
"""Conventions that `lib.function` may name, and their deduction rules."""
