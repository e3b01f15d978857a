"""Operators that pick elements by tensors of indices: gather_elements, gather_nd, index_tensor.

An index outside of its axis is clamped to it.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from relax_mlir.bindings import ext, ir

from .assumed import assume
from .indices import joint_dims, require_elements, require_indices
from .manipulate import normalize_axis
from .op import InferredOp, IntsAttr
from .slots import InferredSlotOp
from .types import Dim, ShapeError, TensorType, dims_differ, static_extent


class GatherElementsOp(InferredOp, name="gather_elements", traits=[ext.Pure]):
    """Picks one element for each index: by the index along one axis, at its own place elsewhere.

        result[i, j] = input[i, indices[i, j]]    along axis 1

    C1  the indices are integers
    C2  both operands have one rank, and `axis` is in range
    C3  along the other axes the input has elements for all indices
    C4  the axis has elements, if there is an index

    Source: ONNX `GatherElements`; ATen `gather`; TVM `relax.gather_elements`.
    """

    result: ext.Result[Any]
    input: ext.Operand[Any]
    indices: ext.Operand[Any]
    axis: ir.IntegerAttr

    @staticmethod
    def infer_return_type(input: TensorType, indices: TensorType, axis: int) -> TensorType:
        require_indices(indices)  # C1
        result = TensorType(indices.dims, input.element)
        if input.dims is None or indices.dims is None:
            return result
        place = elements_axis(input.dims, indices.dims, axis)  # C2, C3
        require_elements(place, input.dims[place], indices.dims)  # C4
        return result


def elements_axis(input: Sequence[Dim], indices: Sequence[Dim], axis: int) -> int:
    """The axis counted from the front, along which indices name elements.

    Raises ShapeError if ranks differ, the axis is out of range, or indices lie beside the input.
    """
    if len(input) != len(indices):
        raise ShapeError(
            f"expects indices of the input's rank {len(input)}, but got rank {len(indices)}"
        )
    place = normalize_axis(axis, len(input))
    for other, (own, dim) in enumerate(zip(input, indices)):
        if other == place:
            continue
        extent, most = static_extent(dim), static_extent(own)
        if extent is not None and most is not None and extent > most:
            raise ShapeError(f"has {extent} indices along dim {other} of {most}")
        assume(dim, "<=", own)
    return place


class GatherNdOp(InferredOp, name="gather_nd", traits=[ext.Pure]):
    """Picks a slice of the input for each tuple of indices, which lie along the last dim.

        result[i, :] = input[indices[i, 0], indices[i, 1], :]

    The first `batch_dims` dims are the same of both: each part has its own indices.

    C1  the indices are integers
    C2  the number of batch dims is 0 or more, and less than the rank of the indices
    C3  the last dim of the indices is a constant; so many dims and the batch dims are in the input
    C4  batch dims are not provably different
    C5  the indexed axes have elements, if there are indices

    Source: ONNX `GatherND`; TVM `relax.gather_nd`, with clamped indices.
    """

    result: ext.Result[Any]
    input: ext.Operand[Any]
    indices: ext.Operand[Any]
    batch_dims: ir.IntegerAttr

    @staticmethod
    def infer_return_type(input: TensorType, indices: TensorType, batch_dims: int) -> TensorType:
        require_indices(indices)  # C1
        if batch_dims < 0:  # C2
            raise ShapeError(f"expects 0 or more batch dims, but got {batch_dims}")
        if input.dims is None or indices.dims is None:
            return TensorType(None, input.element)
        if batch_dims >= len(indices.dims):  # C2
            rank = len(indices.dims)
            raise ShapeError(f"expects fewer batch dims than rank {rank}, but got {batch_dims}")
        count = tuple_length(indices.dims, len(input.dims) - batch_dims)  # C3
        for own, dim in zip(input.dims[:batch_dims], indices.dims):
            if dims_differ(own, dim):  # C4
                raise ShapeError(f"has batch dim {dim} of indices for one of {own}")
        places = indices.dims[:-1]
        for axis in range(batch_dims, batch_dims + count):
            require_elements(axis, input.dims[axis], places)  # C5
        return TensorType((*places, *input.dims[batch_dims + count :]), input.element)


def tuple_length(indices: Sequence[Dim], rank: int) -> int:
    """How many axes each tuple along the last dim indexes; raises ShapeError if above the rank."""
    count = static_extent(indices[-1]) if indices else None
    if count is None or count > rank:
        got = f"dim {indices[-1] or '?'}" if indices else "rank 0"
        raise ShapeError(f"expects indices whose last dim is {rank} or less, but got {got}")
    return count


class IndexTensorOp(InferredSlotOp, name="index_tensor", traits=[ext.Pure]):
    """Indexes several axes together: `input[:, a, b]` of NumPy, with tensors a and b.

    The first operand is indexed by the others, one for each of `axes`, whose dims broadcast. Their
    dims stand in place of the axes if these are neighbours, else in front.

    C1  there is one tensor of indices for each axis, and at least one
    C2  the axes are ascending and in range
    C3  the indices are integers
    C4  aligned dims of the indices are the number 1, or not provably different
    C5  the axes have elements, if there are indices

    Source: NumPy advanced indexing; ATen `index.Tensor`; TVM `relax.index_tensor`.
    """

    axes: IntsAttr = ext.attribute(kw_only=True)

    @staticmethod
    def infer_return_type(*operands: TensorType, axes: Sequence[int]) -> TensorType:
        if not axes or len(operands) != len(axes) + 1:  # C1
            raise ShapeError(
                f"expects a tensor and one of indices for each of {len(axes)} axes,"
                f" but got {len(operands)} operands"
            )
        input, *indices = operands
        require_indices(*indices)  # C3
        shapes = [annotation.dims for annotation in indices if annotation.dims is not None]
        if input.dims is None or len(shapes) < len(indices):
            return TensorType(None, input.element)
        places = indexed_axes(axes, len(input.dims))  # C2
        joint = joint_dims(shapes)  # C4
        for axis in places:
            require_elements(axis, input.dims[axis], joint)  # C5
        kept = [dim for axis, dim in enumerate(input.dims) if axis not in places]
        first = joint_position(places)
        return TensorType((*kept[:first], *joint, *kept[first:]), input.element)


def indexed_axes(axes: Sequence[int], rank: int) -> list[int]:
    """The axes counted from the front; raises ShapeError unless they ascend."""
    places = [normalize_axis(axis, rank) for axis in axes]
    if any(a >= b for a, b in pairwise(places)):
        raise ShapeError(f"expects ascending axes, but got {tuple(axes)}")
    return places


def joint_position(axes: Sequence[int]) -> int:
    """How many dims of what is indexed stand in front of the dims of the indices."""
    return axes[0] if axes[-1] - axes[0] == len(axes) - 1 else 0
