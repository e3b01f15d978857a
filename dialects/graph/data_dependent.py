"""Operators whose data decide how large results are: nonzero, unique, ... (TVM `set`)."""

from collections.abc import Sequence
from typing import Any

from relax_mlir.bindings import ext, ir

from .elementwise import is_bool, is_float, is_integer, require_number, require_one_element_type
from .indices import require_indices
from .manipulate import element_count, normalize_axis
from .op import FlagAttr, InferredOp, IntsAttr
from .types import Dim, ShapeError, TensorType, dims_differ


class DataDependentOp(InferredOp):
    """An operator with results some dims of which only its data tell.

    Those dims are unknown in its annotation; a `graph.match_cast` can name them.
    `relax-expand-data-dependent` has them computed first, and what is of that size then.
    """


def require_elements_that_compare(annotation: TensorType) -> None:
    """Raises ShapeError unless elements are numeric or `i1`."""
    element = annotation.element
    if not (is_float(element) or is_integer(element) or is_bool(element)):
        raise ShapeError(f"expects numeric elements or i1, but got {element}")


def _i64(*dims: Dim) -> TensorType:
    return TensorType(dims, ir.IntegerType.get_signless(64))


class NonzeroOp(DataDependentOp, name="nonzero", traits=[ext.Pure]):
    """The indices of the elements that are not 0, in row-major order: a column for each, as i64.

    The result has the dims [rank, m], where m is their count. A scalar counts as one element of
    rank 1. A NaN is not 0, -0 is.

    C1  the elements are numeric or `i1`
    C2  the rank is known

    Source: ONNX `NonZero`; TVM `relax.nonzero`.
    """

    result: ext.Result[Any]
    input: ext.Operand[Any]

    @staticmethod
    def infer_return_type(input: TensorType) -> TensorType:
        require_elements_that_compare(input)  # C1
        if input.dims is None:  # C2
            raise ShapeError(f"expects a tensor of known rank, but got '{input}'")
        return TensorType.make([max(len(input.dims), 1), None], ir.IntegerType.get_signless(64))


class UniqueOp(DataDependentOp, name="unique", traits=[ext.Pure]):
    """The distinct elements, or the distinct slices along one axis, each once.

    Results are the m of them; for each the index of the first one, as i64; for each element or
    slice of the operand which of them it is; and for each how many there are.

    They are in the order of `sort`, slices by the first elements that differ; with `sorted` false
    in the order of their first occurrence. A NaN is equal to a NaN, and greater than all else;
    zeros of both signs are equal, and the first one stands for them.

    C1  the elements are numeric or `i1`
    C2  there is one axis at most
    C3  the axis is in range
    C4  with an axis the rank is known

    Source: ONNX `Unique`; TVM `relax.unique`; array API 2023.12 `unique_all`.
    """

    values: ext.Result[Any]
    indices: ext.Result[Any]
    inverse: ext.Result[Any]
    counts: ext.Result[Any]
    input: ext.Operand[Any]
    axes: IntsAttr
    sorted: FlagAttr

    @staticmethod
    def infer_return_type(input: TensorType, axes: Sequence[int], sorted: bool) -> list[TensorType]:
        require_elements_that_compare(input)  # C1
        if len(axes) > 1:  # C2
            raise ShapeError(f"expects one axis at most, but got {tuple(axes)}")
        if not axes:
            count = None if input.dims is None else element_count(input.dims)
            return [TensorType((None,), input.element), _i64(None), _i64(count), _i64(None)]
        if input.dims is None:  # C4
            raise ShapeError(f"expects a tensor of known rank, but got '{input}'")
        axis = normalize_axis(axes[0], len(input.dims))  # C3
        dims = (*input.dims[:axis], None, *input.dims[axis + 1 :])
        inverse = _i64(input.dims[axis])
        return [TensorType(dims, input.element), _i64(None), inverse, _i64(None)]


class RepeatInterleaveOp(DataDependentOp, name="repeat_interleave"):
    """Each slice along one axis as often as a tensor says.

    A negative count ends the call with an error, as does a sum of 2^62 or more.

    C1  the counts are integers, in a tensor of rank 1
    C2  the axis is in range
    C3  there are not provably more or fewer counts than slices

    Source: ATen `repeat_interleave`; array API 2023.12 `repeat`.
    """

    result: ext.Result[Any]
    input: ext.Operand[Any]
    repeats: ext.Operand[Any]
    axis: ir.IntegerAttr

    @staticmethod
    def infer_return_type(input: TensorType, repeats: TensorType, axis: int) -> TensorType:
        require_indices(repeats)  # C1
        if repeats.dims is not None and len(repeats.dims) != 1:
            raise ShapeError(f"expects counts in a tensor of rank 1, but got '{repeats}'")
        if input.dims is None:
            return input
        dims = list(input.dims)
        axis = normalize_axis(axis, len(dims))  # C2
        if repeats.dims is not None and dims_differ(dims[axis], repeats.dims[0]):  # C3
            raise ShapeError(f"has {repeats.dims[0]} counts for {dims[axis]} slices")
        dims[axis] = None
        return TensorType(tuple(dims), input.element)


class RangeOfOp(DataDependentOp, name="range_of"):
    """The values `start`, `start + step`, ... before `stop`, which are tensors of rank 0.

    Before it is below it, or above it if the step is negative: there are as many as the quotient
    of `stop - start` and `step`, rounded up. A step of 0 ends the call with an error, as do a
    difference of integers and a quotient of floats of 2^62 or more, or a NaN.

    C1  the three are of one numeric type
    C2  they have rank 0

    Source: ONNX `Range`; `graph.arange` takes bounds that are expressions.
    """

    result: ext.Result[Any]
    start: ext.Operand[Any]
    stop: ext.Operand[Any]
    step: ext.Operand[Any]

    @staticmethod
    def infer_return_type(start: TensorType, stop: TensorType, step: TensorType) -> TensorType:
        require_one_element_type(start, stop, step)  # C1
        require_number(start)
        for bound in (start, stop, step):
            if bound.dims not in ((), None):  # C2
                raise ShapeError(f"expects bounds of rank 0, but got '{bound}'")
        return TensorType((None,), start.element)
