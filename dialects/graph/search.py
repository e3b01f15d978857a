"""Operators that find positions: argmax, argmin (TVM `search`)."""

from typing import Any

from relax_mlir.bindings import ext, ir

from .elementwise import require_number
from .op import FlagAttr, InferredOp
from .statistical import reduced_type
from .types import TensorType


class _ArgReduceOp(InferredOp, traits=[ext.Pure]):
    """The position along one axis of an extreme element, as i64; the first of equal ones."""

    result: ext.Result[Any]
    input: ext.Operand[Any]
    axis: ir.IntegerAttr
    keepdims: FlagAttr

    @staticmethod
    def infer_return_type(input: TensorType, axis: int, keepdims: bool) -> TensorType:
        """C1: the axis is in range; C2: the element type is a number."""
        require_number(input)
        dims = reduced_type(input, [axis], keepdims).dims
        return TensorType(dims, ir.IntegerType.get_signless(64))


class ArgmaxOp(_ArgReduceOp, name="argmax"):
    """The position of the greatest element, or of the first NaN.

    C1  the axis is in range
    C2  the element type is a number

    Source: array API 2023.12 `argmax`.
    """


class ArgminOp(_ArgReduceOp, name="argmin"):
    """The position of the least element, or of the first NaN.

    C1  the axis is in range
    C2  the element type is a number

    Source: array API 2023.12 `argmin`.
    """
