"""Operators that select elements: take, strided_slice (TVM `index`)."""

from collections.abc import Sequence
from typing import Any

from relax_mlir.bindings import ext, ir
from relax_mlir.symbolic import const

from .assumed import assume
from .create import range_length
from .dialect import ShapeAttr
from .indices import require_elements, require_indices
from .manipulate import normalize_axis
from .op import InferredOp, IntsAttr
from .types import Dim, ShapeError, TensorType, as_dims, known_dims


class TakeOp(InferredOp, name="take", traits=[ext.Pure]):
    """Picks slices along one axis by index: an embedding lookup.

    An index outside of the axis is clamped to it.

    C1  `axis` is in range
    C2  the indices are integers
    C3  the axis has elements, if there is an index

    Source: array API 2023.12 `take`; TVM `relax.take`, mode "clip".
    """

    result: ext.Result[Any]
    input: ext.Operand[Any]
    indices: ext.Operand[Any]
    axis: ir.IntegerAttr

    @staticmethod
    def infer_return_type(input: TensorType, indices: TensorType, axis: int) -> TensorType:
        require_indices(indices)  # C2
        if input.dims is None or indices.dims is None:
            return TensorType(None, input.element)
        place = normalize_axis(axis, len(input.dims))  # C1
        require_elements(place, input.dims[place], indices.dims)  # C3
        dims = (*input.dims[:place], *indices.dims, *input.dims[place + 1 :])
        return TensorType(dims, input.element)


class StridedSliceOp(InferredOp, name="strided_slice", traits=[ext.Pure]):
    """Elements `begin`, `begin + stride`, ... below `end` of each listed axis.

    Bounds are expressions with `0 <= begin <= end <= dim`; frontends resolve negative and
    clamped ones.

    C1  `axes` are distinct and in range
    C2  `begin`, `end` and `strides` have one entry per axis
    C3  bounds are known expressions, strides positive

    Source: TVM `relax.strided_slice`.
    """

    result: ext.Result[Any]
    input: ext.Operand[Any]
    axes: IntsAttr
    begin: ShapeAttr
    end: ShapeAttr
    strides: IntsAttr

    @staticmethod
    def infer_return_type(
        input: TensorType,
        axes: Sequence[int],
        begin: Sequence[Dim],
        end: Sequence[Dim],
        strides: Sequence[int],
    ) -> TensorType:
        if not len(axes) == len(begin) == len(end) == len(strides):  # C2
            counts = f"{len(begin)}, {len(end)} and {len(strides)}"
            raise ShapeError(f"expects bounds for {len(axes)} axes, but got {counts}")
        begins, ends = known_dims(as_dims(begin)), known_dims(as_dims(end))
        if begins is None or ends is None or min(strides, default=1) < 1:  # C3
            raise ShapeError("expects known bounds and positive strides")
        if input.dims is None:
            return input
        dims = list(input.dims)
        places = [normalize_axis(axis, len(dims)) for axis in axes]
        if len(set(places)) != len(places):  # C1
            raise ShapeError(f"expects distinct axes, but got {tuple(axes)}")
        for place, first, last, stride in zip(places, begins, ends, strides):
            assume(0, "<=", first)
            assume(first, "<=", last)
            assume(last, "<=", dims[place])
            whole = first == const(0) and last == dims[place] and stride == 1
            dims[place] = dims[place] if whole else range_length(first, last, stride)
        return TensorType(tuple(dims), input.element)
