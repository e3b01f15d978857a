"""Operators that select elements: take, strided_slice, dynamic_slice (TVM `index`)."""

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
from .types import Dim, ShapeError, TensorType, as_dims, dims_differ, known_dims, static_extent


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


class DynamicSliceOp(InferredOp, name="dynamic_slice", traits=[ext.Pure]):
    """A part of given extents that begins where a tensor says, an integer for each dim.

    What would leave the input begins earlier, or later.

    C1  `starts` are integers, one for each dim, in a tensor of rank 1
    C2  there is a known extent for each dim
    C3  no extent is provably greater than the dim

    Source: StableHLO `dynamic_slice`; TVM `relax.dynamic_strided_slice`.
    """

    result: ext.Result[Any]
    input: ext.Operand[Any]
    starts: ext.Operand[Any]
    sizes: ShapeAttr

    @staticmethod
    def infer_return_type(
        input: TensorType, starts: TensorType, sizes: Sequence[Dim]
    ) -> TensorType:
        known = known_dims(as_dims(sizes))
        if known is None:  # C2
            raise ShapeError("expects known extents")
        if input.dims is not None and len(known) != len(input.dims):
            raise ShapeError(f"expects {len(input.dims)} extents, but got {len(known)}")
        require_starts(starts, len(known))  # C1
        if input.dims is not None:
            require_within(known, input.dims)  # C3
        return TensorType(known, input.element)


def require_starts(starts: TensorType, rank: int) -> None:
    """Raises ShapeError unless there is an integer for each dim."""
    require_indices(starts)
    dims = starts.dims
    if dims is not None and (len(dims) != 1 or dims_differ(dims[0], const(rank))):
        raise ShapeError(f"expects {rank} starts in a tensor of rank 1, but got '{starts}'")


def require_within(part: Sequence[Dim], whole: Sequence[Dim]) -> None:
    """Raises ShapeError if a dim of a part is certainly greater than that of the whole."""
    for axis, (dim, most) in enumerate(zip(part, whole)):
        low, high = static_extent(dim), static_extent(most)
        if low is not None and high is not None and low > high:
            raise ShapeError(f"has a part with dim {axis} of {low} in one of {high}")
        assume(dim, "<=", most)
