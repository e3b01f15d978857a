"""Element-wise operators of three tensors: where."""

from typing import Any

from relax_mlir.bindings import ext

from .elementwise import broadcast_types, require_bool, require_one_element_type
from .op import InferredOp
from .types import TensorType


class WhereOp(InferredOp, name="where", traits=[ext.Pure]):
    """Elements of `x` where the condition holds, else of `y`; all three broadcast.

    C1  the condition has element type `i1`
    C2  `x` and `y` have one element type
    C3  the dims broadcast

    Source: array API 2023.12 `where`.
    """

    result: ext.Result[Any]
    condition: ext.Operand[Any]
    x: ext.Operand[Any]
    y: ext.Operand[Any]

    @staticmethod
    def infer_return_type(condition: TensorType, x: TensorType, y: TensorType) -> TensorType:
        require_bool(condition)  # C1
        require_one_element_type(x, y)  # C2
        return broadcast_types(x, y, condition)  # C3
