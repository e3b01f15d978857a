"""Operators that write elements by tensors of indices, and to a slice (TVM `index`).

Where several updates reach one element, they are applied in the order of the indices, row by row;
without a reduction the last one stays. An update whose index is outside of its axis is left out.
"""

from collections.abc import Sequence
from typing import Any

from relax_mlir.bindings import ext, ir
from relax_mlir.symbolic import const

from .dialect import ShapeAttr
from .elementwise import require_number, require_one_element_type
from .gather import elements_axis, indexed_axes, joint_position, tuple_length
from .index import StridedSliceOp, require_starts, require_within
from .indices import joint_dims, require_indices
from .op import InferredOp, IntsAttr
from .slots import InferredSlotOp
from .types import Dim, ShapeError, TensorType, dims_differ

REDUCTIONS = ("none", "add", "mul", "max", "min")


def _require_reduction(input: TensorType, reduction: str) -> None:
    if reduction not in REDUCTIONS:
        raise ShapeError(f"expects one of {', '.join(REDUCTIONS)}, but got '{reduction}'")
    if reduction != "none":
        require_number(input)


def _require_dims(updates: Sequence[Dim], wanted: Sequence[Dim]) -> None:
    if len(updates) != len(wanted):
        raise ShapeError(f"expects updates of rank {len(wanted)}, but got rank {len(updates)}")
    for axis, (dim, other) in enumerate(zip(updates, wanted)):
        if dims_differ(dim, other):
            raise ShapeError(f"has updates with dim {axis} of {dim} for one of {other}")


class ScatterElementsOp(InferredOp, name="scatter_elements", traits=[ext.Pure]):
    """Puts each update where its index says along one axis, at its own place elsewhere.

        result[i, indices[i, j]] = updates[i, j]    along axis 1

    With a `reduction` (add, mul, max, min; else none) the update is combined with what is there.

    C1  the indices are integers
    C2  input and updates have one element type, a number if there is a reduction
    C3  the reduction is a known one
    C4  input and indices have one rank, and `axis` is in range
    C5  along the other axes the input has elements for all indices
    C6  indices and updates have dims that are not provably different

    Source: ONNX `ScatterElements`; ATen `scatter`, `scatter_reduce`; TVM `relax.scatter_elements`.
    """

    result: ext.Result[Any]
    input: ext.Operand[Any]
    indices: ext.Operand[Any]
    updates: ext.Operand[Any]
    axis: ir.IntegerAttr
    reduction: ir.StringAttr

    @staticmethod
    def infer_return_type(
        input: TensorType, indices: TensorType, updates: TensorType, axis: int, reduction: str
    ) -> TensorType:
        require_indices(indices)  # C1
        require_one_element_type(input, updates)  # C2
        _require_reduction(input, reduction)  # C2, C3
        if indices.dims is not None:
            if input.dims is not None:
                elements_axis(input.dims, indices.dims, axis)  # C4, C5
            if updates.dims is not None:
                _require_dims(updates.dims, indices.dims)  # C6
        return input


class ScatterNdOp(InferredOp, name="scatter_nd", traits=[ext.Pure]):
    """Puts a slice of updates where each tuple of indices says, which lie along the last dim.

        result[indices[i, 0], indices[i, 1], :] = updates[i, :]

    With a `reduction` (add, mul, max, min; else none) updates are combined with what is there.

    C1  the indices are integers
    C2  input and updates have one element type, a number if there is a reduction
    C3  the reduction is a known one
    C4  the last dim of the indices is a constant, from 1 to the input's rank
    C5  updates have the dims of the indices but the last, and the input's that are not indexed

    Source: ONNX `ScatterND`; StableHLO `scatter`; TVM `relax.scatter_nd`.
    """

    result: ext.Result[Any]
    input: ext.Operand[Any]
    indices: ext.Operand[Any]
    updates: ext.Operand[Any]
    reduction: ir.StringAttr

    @staticmethod
    def infer_return_type(
        input: TensorType, indices: TensorType, updates: TensorType, reduction: str
    ) -> TensorType:
        require_indices(indices)  # C1
        require_one_element_type(input, updates)  # C2
        _require_reduction(input, reduction)  # C2, C3
        if input.dims is not None and indices.dims is not None:
            count = tuple_length(indices.dims, len(input.dims))  # C4
            if count == 0:
                raise ShapeError("expects indices of at least one axis, but got dim 0")
            if updates.dims is not None:
                _require_dims(updates.dims, (*indices.dims[:-1], *input.dims[count:]))  # C5
        return input


class IndexPutOp(InferredSlotOp, name="index_put", traits=[ext.Pure]):
    """Writes to several axes that are indexed together: `input[:, a, b] = values` of NumPy.

    Operands are the input, the values and a tensor of indices for each of `axes`, as
    `index_tensor` takes them; values repeat along dims that are 1, and along leading ones. With a
    `reduction` (add, mul, max, min; else none) values are combined with what is there.

    C1  there is one tensor of indices for each axis, and at least one
    C2  input and values have one element type, a number if there is a reduction
    C3  the reduction is a known one
    C4  the axes are ascending and in range
    C5  the indices are integers
    C6  aligned dims of the indices are the number 1, or not provably different
    C7  dims of the values are the number 1, or not provably different from what is indexed

    Source: ATen `index_put`; TVM `relax.index_put`.
    """

    axes: IntsAttr = ext.attribute(kw_only=True)
    reduction: ir.StringAttr = ext.attribute(kw_only=True)

    @staticmethod
    def infer_return_type(*operands: TensorType, axes: Sequence[int], reduction: str) -> TensorType:
        if not axes or len(operands) != len(axes) + 2:  # C1
            raise ShapeError(
                f"expects a tensor, values and indices for each of {len(axes)} axes,"
                f" but got {len(operands)} operands"
            )
        input, values, *indices = operands
        require_one_element_type(input, values)  # C2
        _require_reduction(input, reduction)  # C2, C3
        require_indices(*indices)  # C5
        shapes = [annotation.dims for annotation in indices if annotation.dims is not None]
        if input.dims is None:
            return input
        places = indexed_axes(axes, len(input.dims))  # C4
        if len(shapes) == len(indices):
            joint = joint_dims(shapes)  # C6
            kept = [dim for axis, dim in enumerate(input.dims) if axis not in places]
            first = joint_position(places)
            if values.dims is not None:
                _require_fits(values.dims, (*kept[:first], *joint, *kept[first:]))  # C7
        return input


def _require_fits(values: Sequence[Dim], target: Sequence[Dim]) -> None:
    if len(values) > len(target):
        raise ShapeError(f"expects values of rank {len(target)} or less, but got {len(values)}")
    for dim, other in zip(reversed(values), reversed(target)):
        if dim != const(1) and dims_differ(dim, other):
            raise ShapeError(f"has values with a dim of {dim} for one of {other}")


class SliceScatterOp(InferredOp, name="slice_scatter", traits=[ext.Pure]):
    """The input with a slice replaced: what `strided_slice` would read from the result.

    C1  the bounds are as `strided_slice` takes them
    C2  input and updates have one element type
    C3  the dims of the updates are not provably different from those of the slice

    Source: ATen `slice_scatter`; TVM `relax.slice_scatter`.
    """

    result: ext.Result[Any]
    input: ext.Operand[Any]
    updates: ext.Operand[Any]
    axes: IntsAttr
    begin: ShapeAttr
    end: ShapeAttr
    strides: IntsAttr

    @staticmethod
    def infer_return_type(
        input: TensorType,
        updates: TensorType,
        axes: Sequence[int],
        begin: Sequence[Dim],
        end: Sequence[Dim],
        strides: Sequence[int],
    ) -> TensorType:
        require_one_element_type(input, updates)  # C2
        part = StridedSliceOp.infer_return_type(input, axes, begin, end, strides)  # C1
        if part.dims is not None and updates.dims is not None:
            _require_dims(updates.dims, part.dims)  # C3
        return input


class DynamicUpdateSliceOp(InferredOp, name="dynamic_update_slice", traits=[ext.Pure]):
    """The input with a part replaced that begins where a tensor says, an integer for each dim.

    What would leave the input begins earlier, or later, as of `dynamic_slice`. The input is updated
    in place, unless its old contents are needed later.

    C1  input and updates have one element type
    C2  `starts` are integers, one for each dim, in a tensor of rank 1
    C3  input and updates have one rank
    C4  no dim of the updates is provably greater than that of the input

    Source: StableHLO `dynamic_update_slice`.
    """

    result: ext.Result[Any]
    input: ext.Operand[Any]
    updates: ext.Operand[Any]
    starts: ext.Operand[Any]

    # Operand that the result is computed into; without an annotation, since that is a field.
    inplace_operands = (0,)

    @staticmethod
    def infer_return_type(input: TensorType, updates: TensorType, starts: TensorType) -> TensorType:
        require_one_element_type(input, updates)  # C1
        require_indices(starts)  # C2
        if input.dims is not None:
            require_starts(starts, len(input.dims))
            if updates.dims is not None:
                if len(updates.dims) != len(input.dims):  # C3
                    ranks = f"{len(input.dims)} and {len(updates.dims)}"
                    raise ShapeError(f"expects input and updates of one rank, but got {ranks}")
                require_within(updates.dims, input.dims)  # C4
        return input
