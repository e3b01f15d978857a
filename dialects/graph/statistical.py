"""Reductions: sum, mean, variance, logsumexp, max, min, prod, any, all (TVM `statistical`)."""

from collections.abc import Sequence
from typing import Any

from relax_mlir.bindings import ext, ir
from relax_mlir.symbolic import const

from .elementwise import require_bool, require_float, require_number
from .manipulate import normalize_axis
from .op import FlagAttr, InferredOp, IntsAttr
from .types import ShapeError, TensorType


class ReductionOp(InferredOp, traits=[ext.Pure]):
    """Combines the elements along `axes`; no axes stands for all of them."""

    result: ext.Result[Any]
    input: ext.Operand[Any]
    axes: IntsAttr
    keepdims: FlagAttr

    @staticmethod
    def infer_return_type(input: TensorType, axes: Sequence[int], keepdims: bool) -> TensorType:
        """C1: the axes are distinct and in range; C2: the element type is a number."""
        require_number(input)
        return reduced_type(input, axes, keepdims)


def reduced_axes(axes: Sequence[int], rank: int) -> tuple[int, ...]:
    """Returns the axes counted from the front; raises ShapeError if they repeat."""
    places = tuple(normalize_axis(axis, rank) for axis in axes)
    if len(set(places)) != len(places):
        raise ShapeError(f"expects distinct axes, but got {tuple(axes)}")
    return places or tuple(range(rank))


def reduced_type(input: TensorType, axes: Sequence[int], keepdims: bool) -> TensorType:
    """Drops the reduced dims, or keeps them with extent 1."""
    if input.dims is None:
        return input
    places = reduced_axes(axes, len(input.dims))
    if keepdims:
        dims = tuple(const(1) if i in places else dim for i, dim in enumerate(input.dims))
    else:
        dims = tuple(dim for i, dim in enumerate(input.dims) if i not in places)
    return TensorType(dims, input.element)


class SumOp(ReductionOp, name="sum"):
    """The sum of the elements; 0 of none.

    C1  the axes are distinct and in range
    C2  the element type is a number

    Source: array API 2023.12 `sum`, without promotion.
    """


class ProdOp(ReductionOp, name="prod"):
    """The product of the elements; 1 of none.

    C1  the axes are distinct and in range
    C2  the element type is a number

    Source: array API 2023.12 `prod`, without promotion.
    """


class MaxOp(ReductionOp, name="max"):
    """The greatest element, NaN if one is; the least value of the type of none.

    C1  the axes are distinct and in range
    C2  the element type is a number

    Source: array API 2023.12 `max`.
    """


class MinOp(ReductionOp, name="min"):
    """The least element, NaN if one is; the greatest value of the type of none.

    C1  the axes are distinct and in range
    C2  the element type is a number

    Source: array API 2023.12 `min`.
    """


class _TruthOp(ReductionOp):
    @staticmethod
    def infer_return_type(input: TensorType, axes: Sequence[int], keepdims: bool) -> TensorType:
        """C1: the axes are distinct and in range; C2: the element type is `i1`."""
        require_bool(input)
        return reduced_type(input, axes, keepdims)


class AnyOp(_TruthOp, name="any"):
    """Whether an element is true; false of none.

    C1  the axes are distinct and in range
    C2  the element type is `i1`

    Source: array API 2023.12 `any`.
    """


class AllOp(_TruthOp, name="all"):
    """Whether every element is true; true of none.

    C1  the axes are distinct and in range
    C2  the element type is `i1`

    Source: array API 2023.12 `all`.
    """


class MeanOp(ReductionOp, name="mean"):
    """The arithmetic mean; NaN of none.

    C1  the axes are distinct and in range
    C2  the element type is a float

    Source: array API 2023.12 `mean`.
    """

    @staticmethod
    def infer_return_type(input: TensorType, axes: Sequence[int], keepdims: bool) -> TensorType:
        require_float(input)  # C2
        return reduced_type(input, axes, keepdims)  # C1


class _SpreadOp(ReductionOp):
    correction: ir.IntegerAttr

    @staticmethod
    def infer_return_type(
        input: TensorType, axes: Sequence[int], keepdims: bool, correction: int = 0
    ) -> TensorType:
        """C1: the axes are distinct and in range; C2: the element type is a float."""
        require_float(input)
        return reduced_type(input, axes, keepdims)


class VarianceOp(_SpreadOp, name="variance"):
    """The sum of squared differences from the mean, divided by the count less `correction`.

    Where that is not above 0 the divisor is 0.

    C1  the axes are distinct and in range
    C2  the element type is a float

    Source: array API 2023.12 `var`; TVM `relax.variance`.
    """


class StdOp(_SpreadOp, name="std"):
    """The square root of the variance.

    C1  the axes are distinct and in range
    C2  the element type is a float

    Source: array API 2023.12 `std`; TVM `relax.std`.
    """


class LogsumexpOp(ReductionOp, name="logsumexp"):
    """The logarithm of the sum of exponentials, which do not overflow; -infinity of none.

    C1  the axes are distinct and in range
    C2  the element type is a float

    Source: ONNX `ReduceLogSumExp`; ATen `logsumexp`.
    """

    @staticmethod
    def infer_return_type(input: TensorType, axes: Sequence[int], keepdims: bool) -> TensorType:
        require_float(input)  # C2
        return reduced_type(input, axes, keepdims)  # C1
