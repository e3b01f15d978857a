"""Operators that order elements along an axis: sort, topk, argsort_rows (TVM `sorting`)."""

from typing import Any

from relax_mlir.bindings import ext, ir

from .assumed import assume
from .dialect import ShapeAttr
from .elementwise import require_number
from .manipulate import normalize_axis
from .op import FlagAttr, InferredOp
from .types import Dim, ShapeError, TensorType, as_dims, known_dims, static_extent


def _with_indices(values: TensorType) -> list[TensorType]:
    return [values, TensorType(values.dims, ir.IntegerType.get_signless(64))]


class SortOp(InferredOp, name="sort", traits=[ext.Pure]):
    """The elements in order along an axis, and where they were, as i64.

    The least one comes first, with `descending` the greatest. Equal ones stay in their order, as
    do zeros of both signs; a NaN counts as greater than all numbers.

    C1  the element type is a number
    C2  the axis is in range

    Source: ATen `sort` (stable); TVM `relax.sort`, `relax.argsort`; array API 2023.12 `argsort`.
    """

    # Results that its tensor program can do without; without an annotation, as that is a field.
    droppable_results = (1,)

    values: ext.Result[Any]
    indices: ext.Result[Any]
    input: ext.Operand[Any]
    axis: ir.IntegerAttr
    descending: FlagAttr

    @staticmethod
    def infer_return_type(input: TensorType, axis: int, descending: bool) -> list[TensorType]:
        require_number(input)  # C1
        if input.dims is not None:
            normalize_axis(axis, len(input.dims))  # C2
        return _with_indices(input)


class TopkOp(InferredOp, name="topk", traits=[ext.Pure]):
    """The first `k` of what `sort` gives along an axis: the greatest, or the least, in order.

    C1  the element type is a number
    C2  the axis is in range
    C3  `k` is one known expression, not provably above the axis' extent

    Source: ONNX `TopK`; ATen `topk`; TVM `relax.topk`.
    """

    values: ext.Result[Any]
    indices: ext.Result[Any]
    input: ext.Operand[Any]
    k: ShapeAttr
    axis: ir.IntegerAttr
    largest: FlagAttr

    @staticmethod
    def infer_return_type(
        input: TensorType, k: list[Dim], axis: int, largest: bool
    ) -> list[TensorType]:
        require_number(input)  # C1
        known = known_dims(as_dims(k))
        if known is None or len(known) != 1:  # C3
            raise ShapeError(f"expects one known count of elements, but got {len(k)}")
        if input.dims is None:
            return _with_indices(input)
        dims = list(input.dims)
        place = normalize_axis(axis, len(dims))  # C2
        (count,), extent = known, dims[place]
        least, most = static_extent(count), static_extent(extent)
        if least is not None and most is not None and least > most:
            raise ShapeError(f"takes {least} elements from axis {place} of {most}")
        assume(count, "<=", extent)
        dims[place] = count
        return _with_indices(TensorType(tuple(dims), input.element))


class ArgsortRowsOp(InferredOp, name="argsort_rows", traits=[ext.Pure]):
    """Where the rows of a matrix are in order, as i64: the index of the first one, and so on.

    Rows are compared by the first elements that differ, as `sort` compares elements; equal ones
    stay in their order.

    C1  the element type is numeric
    C2  the operand has rank 2

    Source: NumPy `lexsort`, of columns from the last one to the first.
    """

    result: ext.Result[Any]
    input: ext.Operand[Any]

    @staticmethod
    def infer_return_type(input: TensorType) -> TensorType:
        require_number(input)  # C1
        if input.dims is not None and len(input.dims) != 2:  # C2
            raise ShapeError(f"expects a matrix, but got '{input}'")
        dims = None if input.dims is None else input.dims[:1]
        return TensorType(dims or (None,), ir.IntegerType.get_signless(64))
