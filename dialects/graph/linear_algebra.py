"""Operators of linear algebra: matmul."""

from typing import Any

from relax_mlir.bindings import ext

from .broadcasting import broadcast
from .elementwise import require_number, require_one_element_type
from .op import InferredOp
from .types import ShapeError, TensorType, dims_differ


class MatmulOp(InferredOp, name="matmul", traits=[ext.Pure]):
    """Multiplies matrices, broadcasting the dims in front of the last two.

        lhs : tensor<..., m, k>    rhs : tensor<..., k, n>    result : tensor<..., m, n>

    C1  both operands have rank 2 or more
    C2  both operands have one element type, a number
    C3  the contracted dims, `lhs[-1]` and `rhs[-2]`, are not provably different
    C4  the dims in front broadcast

    Source: paper §4.1; TVM `relax.matmul`; array API 2023.12 `matmul`. Rank 1 is left out:
    frontends reshape, so that passes meet one form.
    """

    result: ext.Result[Any]
    lhs: ext.Operand[Any]
    rhs: ext.Operand[Any]

    @staticmethod
    def infer_return_type(lhs: TensorType, rhs: TensorType) -> TensorType:
        require_one_element_type(lhs, rhs)  # C2
        require_number(lhs)
        if lhs.dims is None or rhs.dims is None:
            return TensorType(None, lhs.element)
        if min(len(lhs.dims), len(rhs.dims)) < 2:  # C1
            raise ShapeError(f"expects operands of rank 2 or more, but got '{lhs}' and '{rhs}'")
        *batch_lhs, m, k = lhs.dims
        *batch_rhs, k_rhs, n = rhs.dims
        if dims_differ(k, k_rhs):  # C3
            raise ShapeError(f"contracts dim {k} of lhs with dim {k_rhs} of rhs")
        return TensorType((*broadcast(batch_lhs, batch_rhs), m, n), lhs.element)  # C4
