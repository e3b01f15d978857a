"""Operators that accumulate along an axis: cumsum, cumprod (TVM `statistical`)."""

from typing import Any

from relax_mlir.bindings import ext, ir

from .elementwise import require_number
from .manipulate import normalize_axis
from .op import FlagAttr, InferredOp
from .types import TensorType


class ScanOp(InferredOp, traits=[ext.Pure]):
    """For each element what those up to it along an axis come to.

    With `exclusive` the element itself is left out; with `reverse` it is those from it on.
    """

    result: ext.Result[Any]
    input: ext.Operand[Any]
    axis: ir.IntegerAttr
    exclusive: FlagAttr
    reverse: FlagAttr

    @staticmethod
    def infer_return_type(
        input: TensorType, axis: int, exclusive: bool, reverse: bool
    ) -> TensorType:
        """C1: the element type is a number; C2: the axis is in range."""
        require_number(input)
        if input.dims is not None:
            normalize_axis(axis, len(input.dims))
        return input


class CumsumOp(ScanOp, name="cumsum"):
    """The sum of the elements up to each one along an axis; integers wrap.

    C1  the element type is a number
    C2  the axis is in range

    Source: ONNX `CumSum`; ATen `cumsum`; TVM `relax.cumsum`, without promotion.
    """


class CumprodOp(ScanOp, name="cumprod"):
    """The product of the elements up to each one along an axis; integers wrap.

    C1  the element type is a number
    C2  the axis is in range

    Source: ONNX `CumProd`; ATen `cumprod`; TVM `relax.cumprod`, without promotion.
    """
