"""Operators that make tensors: full, arange, one_hot, eye, tril, triu (TVM `create`)."""

from collections.abc import Sequence
from typing import Any

from relax_mlir.bindings import ext, ir
from relax_mlir.symbolic import Expr, bounds, maximum

from .dialect import ShapeAttr
from .elementwise import is_bool, is_float, is_integer, require_one_element_type
from .indices import require_indices
from .manipulate import normalize_axis
from .op import InferredOp
from .types import Dim, ShapeError, TensorType, as_dims, known_dims


class FullOp(InferredOp, name="full", traits=[ext.Pure]):
    """A tensor of the given dims whose elements all are the operand, a tensor of rank 0.

    C1  the fill value has rank 0
    C2  every dim is a known expression

    Source: array API 2023.12 `full`.
    """

    result: ext.Result[Any]
    fill_value: ext.Operand[Any]
    shape: ShapeAttr

    @staticmethod
    def infer_return_type(fill_value: TensorType, shape: Sequence[Dim]) -> TensorType:
        if fill_value.dims is None or len(fill_value.dims) != 0:  # C1
            raise ShapeError(f"expects a fill value of rank 0, but got '{fill_value}'")
        result = fill_value.with_dims(shape)
        if not result.is_exact:  # C2
            raise ShapeError(f"expects known dims, but got '{result}'")
        return result


class ArangeOp(InferredOp, name="arange", traits=[ext.Pure]):
    """The numbers `start`, `start + step`, ... below `stop`; bounds are expressions.

    The length is `(stop - start + step - 1) floordiv step`, and 0 if `stop` lies below `start`.

    C1  `bounds` are the three known expressions start, stop, step
    C2  the step is a positive constant
    C3  the element type is a number

    Source: array API 2023.12 `arange`.
    """

    result: ext.Result[Any]
    bounds: ShapeAttr
    dtype: ir.TypeAttr

    @staticmethod
    def infer_return_type(bounds: Sequence[Dim], dtype: ir.Type) -> TensorType:
        start, stop, step = _range_bounds(as_dims(bounds))
        if is_bool(dtype) or not (is_float(dtype) or is_integer(dtype)):  # C3
            raise ShapeError(f"expects a number dtype, but got {dtype}")
        return TensorType.make([range_length(start, stop, step)], dtype)


def _range_bounds(dims: Sequence[Dim]) -> tuple[Expr, Expr, int]:
    known = known_dims(dims)
    if known is None or len(known) != 3:  # C1
        raise ShapeError(f"expects known start, stop and step, but got {len(dims)} bounds")
    start, stop, step = known
    if step.value is None or step.value <= 0:  # C2
        raise ShapeError(f"expects a positive constant step, but got {step}")
    return start, stop, step.value


def range_length(start: Expr, stop: Expr, step: int) -> Expr:
    """Number of elements of a range; never negative."""
    length = (stop - start + (step - 1)) // step
    low, _ = bounds(length)
    return length if low is not None and low >= 0 else maximum(length, 0)


class OneHotOp(InferredOp, name="one_hot", traits=[ext.Pure]):
    """A new axis on which `on` is where the index says, and `off` elsewhere.

    An index outside of 0 to `depth` - 1 is nowhere.

    C1  the indices are integers
    C2  `on` and `off` have rank 0 and one element type
    C3  `depth` is one known extent
    C4  `axis` is in range of the result's rank

    Source: ONNX `OneHot`; TVM `relax.one_hot`.
    """

    result: ext.Result[Any]
    indices: ext.Operand[Any]
    on: ext.Operand[Any]
    off: ext.Operand[Any]
    depth: ShapeAttr
    axis: ir.IntegerAttr

    @staticmethod
    def infer_return_type(
        indices: TensorType, on: TensorType, off: TensorType, depth: Sequence[Dim], axis: int
    ) -> TensorType:
        require_indices(indices)  # C1
        require_one_element_type(on, off)  # C2
        if on.dims != () or off.dims != ():
            raise ShapeError(f"expects values of rank 0, but got '{on}' and '{off}'")
        known = known_dims(as_dims(depth))
        if known is None or len(known) != 1:  # C3
            raise ShapeError(f"expects one known depth, but got {len(depth)}")
        if indices.dims is None:
            return TensorType(None, on.element)
        place = normalize_axis(axis, len(indices.dims) + 1)  # C4
        return TensorType((*indices.dims[:place], *known, *indices.dims[place:]), on.element)


class EyeOp(InferredOp, name="eye", traits=[ext.Pure]):
    """A matrix with 1 on a diagonal, where `column == row + k`, and 0 elsewhere.

    C1  there are two known dims
    C2  the element type is a number or `i1`

    Source: array API 2023.12 `eye`; ONNX `EyeLike`.
    """

    result: ext.Result[Any]
    shape: ShapeAttr
    k: ir.IntegerAttr
    dtype: ir.TypeAttr

    @staticmethod
    def infer_return_type(shape: Sequence[Dim], k: int, dtype: ir.Type) -> TensorType:
        known = known_dims(as_dims(shape))
        if known is None or len(known) != 2:  # C1
            raise ShapeError(f"expects two known dims, but got {len(shape)}")
        if not (is_float(dtype) or is_integer(dtype) or is_bool(dtype)):  # C2
            raise ShapeError(f"expects a dtype of numbers or i1, but got {dtype}")
        return TensorType(known, dtype)


class _TriangleOp(InferredOp, traits=[ext.Pure]):
    """Keeps one side of a diagonal of the last two dims and sets the rest to 0."""

    result: ext.Result[Any]
    input: ext.Operand[Any]
    k: ir.IntegerAttr

    @staticmethod
    def infer_return_type(input: TensorType, k: int) -> TensorType:
        """C1: the operand has rank 2 or more."""
        if input.dims is not None and len(input.dims) < 2:
            raise ShapeError(f"expects an operand of rank 2 or more, but got '{input}'")
        return input


class TrilOp(_TriangleOp, name="tril"):
    """The lower triangle: elements with `column <= row + k`.

    C1  the operand has rank 2 or more

    Source: array API 2023.12 `tril`.
    """


class TriuOp(_TriangleOp, name="triu"):
    """The upper triangle: elements with `column >= row + k`.

    C1  the operand has rank 2 or more

    Source: array API 2023.12 `triu`.
    """
