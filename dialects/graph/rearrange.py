"""Operators that repeat elements or put them in another order: flip, roll, tile, repeat, stack."""

from collections.abc import Sequence
from typing import Any

from relax_mlir.bindings import ext, ir
from relax_mlir.symbolic import const

from .assumed import assume
from .dialect import ShapeAttr
from .manipulate import join_shapes, normalize_axis, shapes_to_join
from .op import InferredOp, IntsAttr
from .slots import InferredSlotOp
from .types import Dim, ShapeError, TensorType, as_dims, known_dims


def _distinct_axes(axes: Sequence[int], rank: int) -> list[int]:
    places = [normalize_axis(axis, rank) for axis in axes]
    if len(set(places)) != len(places):
        raise ShapeError(f"expects distinct axes, but got {tuple(axes)}")
    return places


class FlipOp(InferredOp, name="flip", traits=[ext.Pure]):
    """The elements in reverse order along each of `axes`.

    C1  `axes` are distinct and in range

    Source: array API 2023.12 `flip`; StableHLO `reverse`.
    """

    result: ext.Result[Any]
    input: ext.Operand[Any]
    axes: IntsAttr

    @staticmethod
    def infer_return_type(input: TensorType, axes: Sequence[int]) -> TensorType:
        if input.dims is not None:
            _distinct_axes(axes, len(input.dims))  # C1
        return input


class RollOp(InferredOp, name="roll", traits=[ext.Pure]):
    """The elements moved by `shifts` along `axes`; what leaves one end comes in at the other.

    C1  `axes` are distinct and in range
    C2  there is one shift for each axis

    Source: array API 2023.12 `roll`.
    """

    result: ext.Result[Any]
    input: ext.Operand[Any]
    shifts: IntsAttr
    axes: IntsAttr

    @staticmethod
    def infer_return_type(
        input: TensorType, shifts: Sequence[int], axes: Sequence[int]
    ) -> TensorType:
        if len(shifts) != len(axes):  # C2
            raise ShapeError(f"expects {len(axes)} shifts, but got {len(shifts)}")
        if input.dims is not None:
            _distinct_axes(axes, len(input.dims))  # C1
        return input


def _check_counts(counts: Sequence[Dim]) -> None:
    """Raises ShapeError unless all are known, and none is provably negative."""
    known = known_dims(as_dims(counts))
    if known is None:
        raise ShapeError("expects known numbers of repetitions")
    for count in known:
        if count.value is not None and count.value < 0:
            raise ShapeError(f"expects 0 or more repetitions, but got {count}")
        if count.value is None:
            assume(0, "<=", count)


class TileOp(InferredOp, name="tile", traits=[ext.Pure]):
    """The whole tensor, so many times along each axis; further numbers in front add dims.

    C1  numbers of repetitions are known, and not provably negative
    C2  there are at least as many of them as dims

    Source: array API 2023.12 `tile`; ONNX `Tile`; ATen `repeat`.
    """

    result: ext.Result[Any]
    input: ext.Operand[Any]
    repeats: ShapeAttr

    @staticmethod
    def infer_return_type(input: TensorType, repeats: Sequence[Dim]) -> TensorType:
        _check_counts(repeats)  # C1
        counts = as_dims(repeats)
        if input.dims is None:
            return TensorType((None,) * len(counts), input.element)
        if len(counts) < len(input.dims):  # C2
            raise ShapeError(
                f"expects repetitions of {len(input.dims)} dims, but got {len(counts)}"
            )
        own = (const(1),) * (len(counts) - len(input.dims)) + input.dims
        return TensorType(tuple(map(_times, own, counts)), input.element)


def _times(dim: Dim, count: Dim) -> Dim:
    return None if dim is None or count is None else dim * count


class RepeatOp(InferredOp, name="repeat", traits=[ext.Pure]):
    """Each element so many times in a row along an axis.

    C1  the axis is in range
    C2  `repeats` is one known number, not provably negative

    Source: array API 2023.12 `repeat`, with one number for all; ATen `repeat_interleave`.
    """

    result: ext.Result[Any]
    input: ext.Operand[Any]
    repeats: ShapeAttr
    axis: ir.IntegerAttr

    @staticmethod
    def infer_return_type(input: TensorType, repeats: Sequence[Dim], axis: int) -> TensorType:
        if len(repeats) != 1:  # C2
            raise ShapeError(f"expects one number of repetitions, but got {len(repeats)}")
        _check_counts(repeats)
        if input.dims is None:
            return input
        dims = list(input.dims)
        place = normalize_axis(axis, len(dims))  # C1
        dims[place] = _times(dims[place], as_dims(repeats)[0])
        return TensorType(tuple(dims), input.element)


class StackOp(InferredSlotOp, name="stack", traits=[ext.Pure]):
    """Joins tensors along a new axis.

    C1  there is at least one operand
    C2  all operands have one element type
    C3  all operands have one rank, and `axis` is in range of the result's
    C4  their dims are not provably different

    Source: array API 2023.12 `stack`.
    """

    axis: ir.IntegerAttr = ext.attribute(kw_only=True)

    @staticmethod
    def infer_return_type(*inputs: TensorType, axis: int) -> TensorType:
        shapes = shapes_to_join(inputs)  # C1 to C3
        if not shapes:
            return TensorType(None, inputs[0].element)
        place = normalize_axis(axis, len(shapes[0]) + 1)
        dims = join_shapes(shapes)  # C4
        dims.insert(place, const(len(inputs)))
        return TensorType(tuple(dims), inputs[0].element)
