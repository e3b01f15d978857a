"""Operators on element types: astype."""

from typing import Any

from relax_mlir.bindings import ext, ir

from .elementwise import is_bool, is_float, is_integer
from .op import InferredOp
from .types import ShapeError, TensorType, is_small_float


class AstypeOp(InferredOp, name="astype", traits=[ext.Pure]):
    """Converts every element to another type.

    Floats become integers by truncation, numbers become `i1` by comparison with 0. A float
    outside of the integer's range gives the nearest integer of it, NaN gives 0. What is beyond the
    greatest float of 8 bits, infinity included, becomes that; others become infinite. A conversion
    to the same type changes nothing.

    C1  the new element type is a float, an integer or `i1`

    Source: array API 2023.12 `astype`.
    """

    result: ext.Result[Any]
    input: ext.Operand[Any]
    dtype: ir.TypeAttr

    @staticmethod
    def infer_return_type(input: TensorType, dtype: ir.Type) -> TensorType:
        if not any(holds(dtype) for holds in (is_float, is_small_float, is_integer, is_bool)):  # C1
            raise ShapeError(f"expects a float, integer or i1 dtype, but got {dtype}")
        return TensorType(input.dims, dtype)
