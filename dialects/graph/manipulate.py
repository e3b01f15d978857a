"""Operators that move elements without computing on them (TVM `manipulate`)."""

from collections.abc import Sequence
from typing import Any

from relax_mlir.bindings import ext, ir
from relax_mlir.symbolic import Expr, const, product

from .broadcasting import broadcasts_to
from .dialect import ShapeAttr
from .elementwise import require_one_element_type
from .op import InferredOp, IntsAttr
from .slots import InferredSlotOp
from .types import (
    Dim,
    ShapeError,
    TensorType,
    as_dims,
    dims_differ,
    join_dims,
    known_dims,
)


def normalize_axis(axis: int, rank: int) -> int:
    """Returns the axis counted from the front; raises ShapeError if it is out of range."""
    if not -rank <= axis < rank:
        raise ShapeError(f"has axis {axis}, but rank {rank} accepts {-rank} to {rank - 1}")
    return axis % rank


def element_count(dims: Sequence[Dim]) -> Expr | None:
    """Returns the product of the dims, None if one is unknown."""
    known = known_dims(dims)
    return None if known is None else product(known)


class PermuteDimsOp(InferredOp, name="permute_dims", traits=[ext.Pure]):
    """Reorders the dims: result dim i is operand dim `axes[i]`.

    C1  `axes` is a permutation of the operand's dims

    Source: array API 2023.12 `permute_dims`.
    """

    result: ext.Result[Any]
    input: ext.Operand[Any]
    axes: IntsAttr

    @staticmethod
    def infer_return_type(input: TensorType, axes: Sequence[int]) -> TensorType:
        if input.dims is None:
            return TensorType((None,) * len(axes), input.element)
        if sorted(axes) != list(range(len(input.dims))):  # C1
            raise ShapeError(f"expects a permutation of {len(input.dims)} dims, but got {axes}")
        return TensorType(tuple(input.dims[axis] for axis in axes), input.element)


class ReshapeOp(InferredOp, name="reshape", traits=[ext.Pure]):
    """The same elements in row-major order under other dims.

    C1  every dim is a known expression
    C2  the number of elements is not provably different

    Source: array API 2023.12 `reshape`. A dim of -1 is resolved by frontends, so that the IR
    says what it means.
    """

    result: ext.Result[Any]
    input: ext.Operand[Any]
    shape: ShapeAttr

    @staticmethod
    def infer_return_type(input: TensorType, shape: Sequence[Dim]) -> TensorType:
        dims = as_dims(shape)
        result = TensorType(dims, input.element)
        if not result.is_exact:  # C1
            raise ShapeError(f"expects known dims, but got '{result}'")
        if input.dims is not None:
            before, after = element_count(input.dims), element_count(dims)
            if dims_differ(before, after):  # C2
                raise ShapeError(f"has {before} elements, which '{result}' cannot hold")
        return result


class ExpandDimsOp(InferredOp, name="expand_dims", traits=[ext.Pure]):
    """Inserts dims of extent 1; `axes` are positions in the result.

    C1  `axes` are distinct and in range of the result's rank

    Source: array API 2023.12 `expand_dims`.
    """

    result: ext.Result[Any]
    input: ext.Operand[Any]
    axes: IntsAttr

    @staticmethod
    def infer_return_type(input: TensorType, axes: Sequence[int]) -> TensorType:
        if input.dims is None:
            return input
        rank = len(input.dims) + len(axes)
        places = [normalize_axis(axis, rank) for axis in axes]
        if len(set(places)) != len(places):  # C1
            raise ShapeError(f"expects distinct axes, but got {tuple(axes)}")
        rest = iter(input.dims)
        dims = tuple(const(1) if place in places else next(rest) for place in range(rank))
        return TensorType(dims, input.element)


class SqueezeOp(InferredOp, name="squeeze", traits=[ext.Pure]):
    """Removes dims of extent 1.

    C1  `axes` are distinct and in range of the operand's rank
    C2  no removed dim is provably different from 1

    Source: array API 2023.12 `squeeze`.
    """

    result: ext.Result[Any]
    input: ext.Operand[Any]
    axes: IntsAttr

    @staticmethod
    def infer_return_type(input: TensorType, axes: Sequence[int]) -> TensorType:
        if input.dims is None:
            return input
        places = [normalize_axis(axis, len(input.dims)) for axis in axes]
        if len(set(places)) != len(places):  # C1
            raise ShapeError(f"expects distinct axes, but got {tuple(axes)}")
        for place in places:
            if dims_differ(input.dims[place], const(1)):  # C2
                raise ShapeError(f"cannot remove dim {place} of extent {input.dims[place]}")
        dims = tuple(dim for place, dim in enumerate(input.dims) if place not in places)
        return TensorType(dims, input.element)


class BroadcastToOp(InferredOp, name="broadcast_to", traits=[ext.Pure]):
    """Repeats dims of extent 1 and adds leading dims to reach the given dims.

    C1  every target dim is a known expression
    C2  the operand broadcasts to the target dims without changing them

    Source: array API 2023.12 `broadcast_to`.
    """

    result: ext.Result[Any]
    input: ext.Operand[Any]
    shape: ShapeAttr

    @staticmethod
    def infer_return_type(input: TensorType, shape: Sequence[Dim]) -> TensorType:
        dims = as_dims(shape)
        result = TensorType(dims, input.element)
        if not result.is_exact:  # C1
            raise ShapeError(f"expects known dims, but got '{result}'")
        if input.dims is not None:
            if len(input.dims) > len(dims):  # C2
                raise ShapeError(f"cannot broadcast '{input}' to the lower rank of '{result}'")
            last = dims[len(dims) - len(input.dims) :]
            if not all(map(broadcasts_to, input.dims, last)):
                raise ShapeError(f"cannot broadcast '{input}' to '{result}'")
        return result


class ConcatOp(InferredSlotOp, name="concat", traits=[ext.Pure]):
    """Joins tensors along one axis.

    C1  there is at least one operand
    C2  all operands have one element type
    C3  all operands have one rank, and `axis` is in range
    C4  the other dims are not provably different

    Source: array API 2023.12 `concat`.
    """

    axis: ir.IntegerAttr = ext.attribute(kw_only=True)

    @staticmethod
    def infer_return_type(*inputs: TensorType, axis: int) -> TensorType:
        shapes = shapes_to_join(inputs)  # C1 to C3
        if not shapes:
            return TensorType(None, inputs[0].element)
        place = normalize_axis(axis, len(shapes[0]))
        extents = [shape[place] for shape in shapes]
        dims = join_shapes(shapes, without=place)  # C4
        known = [extent for extent in extents if extent is not None]
        dims[place] = sum(known[1:], known[0]) if len(known) == len(extents) else None
        return TensorType(tuple(dims), inputs[0].element)


def shapes_to_join(inputs: Sequence[TensorType]) -> list[tuple[Dim, ...]]:
    """The dims of operands that one result holds; none if the rank of one is unknown.

    Raises ShapeError if there are no operands, or these differ in rank or element type.
    """
    if not inputs:
        raise ShapeError("expects at least one operand")
    require_one_element_type(*inputs)
    shapes = [input.dims for input in inputs if input.dims is not None]
    if len(shapes) < len(inputs):
        return []
    ranks = {len(shape) for shape in shapes}
    if len(ranks) != 1:
        raise ShapeError(f"expects operands of one rank, but got ranks {sorted(ranks)}")
    return shapes


def join_shapes(shapes: Sequence[tuple[Dim, ...]], without: int | None = None) -> list[Dim]:
    """The dims that shapes of one rank have in common; those of axis `without` may differ.

    Raises ShapeError if others provably differ.
    """
    dims = list(shapes[0])
    for other in shapes[1:]:
        for axis, (own, dim) in enumerate(zip(dims, other, strict=True)):
            if axis == without:
                continue
            if dims_differ(own, dim):
                raise ShapeError(f"joins dim {axis} of {own} with one of {dim}")
            dims[axis] = join_dims(own, dim)
    return dims


class SplitOp(InferredSlotOp, name="split", traits=[ext.Pure]):
    """Cuts a tensor along one axis into pieces of the given extents.

    C1  `axis` is in range
    C2  the extents are known and do not provably sum to something else than the dim
    C3  there is one operand

    Source: TVM `relax.split`, with extents in place of cut points so that each result's dim is
    written where it is used.
    """

    sizes: ShapeAttr = ext.attribute(kw_only=True)
    axis: ir.IntegerAttr = ext.attribute(kw_only=True)

    @staticmethod
    def infer_return_type(
        input: TensorType, sizes: Sequence[Dim], axis: int
    ) -> Sequence[TensorType]:
        given = as_dims(sizes)
        if input.dims is None:
            return [input] * len(given)
        place = normalize_axis(axis, len(input.dims))  # C1
        pieces = known_dims(given)
        if pieces is None:  # C2
            raise ShapeError(f"expects known extents, but got {[str(piece) for piece in given]}")
        total = const(0)
        for piece in pieces:
            total = total + piece
        if dims_differ(total, input.dims[place]):
            raise ShapeError(f"splits dim {place} of {input.dims[place]} into extents of {total}")
        head, tail = input.dims[:place], input.dims[place + 1 :]
        return [TensorType((*head, piece, *tail), input.element) for piece in pieces]
