"""Operators that add elements around a tensor: pad."""

from collections.abc import Sequence
from typing import Any

from relax_mlir.bindings import ext, ir
from relax_mlir.symbolic import Expr, bounds, const, maximum

from .assumed import assume
from .dialect import ShapeAttr
from .elementwise import require_one_element_type
from .indices import require_elements
from .op import InferredOp, IntsAttr
from .types import Dim, ShapeError, TensorType, as_dims, known_dims

MODES = ("constant", "edge", "reflect", "wrap")


class PadOp(InferredOp, name="pad", traits=[ext.Pure]):
    """Puts elements in front of, behind and between those of each dim; a negative number removes.

    `low`, `high` and `interior` have a number for each dim, of elements in front of the first,
    behind the last, and between neighbours. New ones are `value`, or by `mode`

        edge      the nearest element                      [a b c d] -> a a [a b c d] d d
        reflect   mirrored at it, without it itself        [a b c d] -> c b [a b c d] c b
        wrap      from the other end                       [a b c d] -> c d [a b c d] a b

    C1  the mode is a known one
    C2  there are a known `low`, `high` and `interior` for each dim
    C3  mode constant has a value of rank 0 and the input's element type; others have none
    C4  interior numbers are 0 or more, and 0 in other modes than constant
    C5  no dim of the result is provably below 0
    C6  what is repeated is there: edge takes an element, reflect and wrap as many as are added

    Source: StableHLO `pad`; ONNX `Pad`; ATen `constant_pad_nd`; TVM `relax.nn.pad`.
    """

    result: ext.Result[Any]
    input: ext.Operand[Any]
    value: ext.Operand[Any] | None = None
    low: ShapeAttr = ext.attribute(kw_only=True)
    high: ShapeAttr = ext.attribute(kw_only=True)
    interior: IntsAttr = ext.attribute(kw_only=True)
    mode: ir.StringAttr = ext.attribute(kw_only=True)

    @staticmethod
    def infer_return_type(
        input: TensorType,
        value: TensorType | None = None,
        *,
        low: Sequence[Dim],
        high: Sequence[Dim],
        interior: Sequence[int],
        mode: str,
    ) -> TensorType:
        if mode not in MODES:  # C1
            raise ShapeError(f"expects one of {', '.join(MODES)}, but got '{mode}'")
        _check_value(input, value, mode)  # C3
        lows, highs = known_dims(as_dims(low)), known_dims(as_dims(high))
        rank = len(interior) if input.dims is None else len(input.dims)
        if lows is None or highs is None or not len(lows) == len(highs) == len(interior) == rank:
            counts = f"{len(low)}, {len(high)} and {len(interior)}"  # C2
            raise ShapeError(f"expects known numbers for {rank} dims, but got {counts}")
        if min(interior, default=0) < 0 or (mode != "constant" and any(interior)):  # C4
            raise ShapeError(f"has interior numbers {tuple(interior)} in mode {mode}")
        if input.dims is None:
            return TensorType((None,) * rank, input.element)
        dims = []
        for axis, (dim, first, last) in enumerate(zip(input.dims, lows, highs)):
            dims.append(_padded(axis, dim, first, last, interior[axis]))  # C5
            _check_source(axis, dim, first, last, dims[-1], mode)  # C6
        return TensorType(tuple(dims), input.element)


def _check_value(input: TensorType, value: TensorType | None, mode: str) -> None:
    if (value is not None) != (mode == "constant"):
        raise ShapeError(f"has {'a' if value else 'no'} value in mode {mode}")
    if value is not None:
        require_one_element_type(input, value)
        if value.dims != ():
            raise ShapeError(f"expects a value of rank 0, but got '{value}'")


def dilated(dim: Expr, interior: int) -> Expr:
    """The extent of a dim with some elements between neighbours."""
    if not interior:
        return dim
    low, _ = bounds(dim)
    gaps = dim - 1 if low is not None and low >= 1 else maximum(dim - 1, 0)
    return dim + gaps * interior


def _padded(axis: int, dim: Dim, low: Expr, high: Expr, interior: int) -> Dim:
    if dim is None:
        return None
    padded = dilated(dim, interior) + low + high
    if padded.value is not None and padded.value < 0:
        raise ShapeError(f"removes more from dim {axis} of {dim} than it has")
    least, _ = bounds(padded)
    if least is None or least < 0:
        assume(0, "<=", padded)
    return padded


def _check_source(axis: int, dim: Dim, low: Expr, high: Expr, padded: Dim, mode: str) -> None:
    """Refuses what is repeated of a dim that has too few elements."""
    if dim is None or (low == const(0) == high) or mode == "constant":
        return
    if mode == "edge":
        require_elements(axis, dim, [padded])
        return
    most = dim - 1 if mode == "reflect" else dim
    for added in (low, high):
        if added.value is not None and most.value is not None and added.value > most.value:
            raise ShapeError(f"adds {added} elements to dim {axis} of {dim} in mode {mode}")
        if added.value is None or added.value > 0:
            assume(added, "<=", most)
