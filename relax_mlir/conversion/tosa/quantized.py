"""Integers of other scales: exact, in 64 bits."""

from relax_mlir.bindings import ir
from relax_mlir.decompositions.emit import (
    add,
    astype,
    element_of,
    emit,
    multiply,
    rank_of,
    reshape,
    scalar,
    subtract,
    vector,
    where,
)
from relax_mlir.dialects import graph
from relax_mlir.dialects.graph import ShapeError

from ..function import Conversion
from ..registry import converts
from .constants import constant_of, integer_of
from .elementwise import saturated

_INEXACT = "INEXACT_ROUND"


@converts("tosa.rescale")
def rescale(conversion: Conversion, op: ir.Operation) -> None:
    """(x - zero point) * multiplier / 2**shift, rounded to nearest, with ties up, and saturated.

    With double rounding, what is shifted by more than 31 is rounded to 30 bits first. Source:
    TOSA 1.0, `apply_scale_32` and `apply_scale_16`.
    """
    source, *given = op.operands
    value, i64 = conversion.value(source), ir.IntegerType.get_signless(64)
    own, element = element_of(value), ir.RankedTensorType(op.results[0].type).element_type
    if not isinstance(own, ir.IntegerType) or own.width > 32:
        raise ShapeError(f"scales elements of {own}; expects integers of 32 bits at most")
    assert isinstance(element, ir.IntegerType)
    multipliers = constant_of(given[0], "multipliers")
    shifts = constant_of(given[1], "shifts")
    zero_in, zero_out = (integer_of(each, "a zero point") for each in given[2:])
    if any(not 2 <= shift <= 62 for shift in shifts):
        raise ShapeError(f"has shifts {shifts}; expects 2 to 62")
    flags = {
        name: ir.BoolAttr(op.attributes[name]).value
        for name in ("input_unsigned", "output_unsigned")
    }
    wider = _widened(value, own, flags["input_unsigned"])
    centred = subtract(wider, zero_in % (1 << own.width) if flags["input_unsigned"] else zero_in)
    factor, shift = (_by_channel(each, rank_of(value)) for each in (multipliers, shifts))
    scaled = multiply(centred, factor)
    one = scalar(1, i64)
    half = emit(graph.LeftShiftOp, one, subtract(shift, 1))
    rounding = str(op.attributes["rounding_mode"])
    if _INEXACT in rounding:
        raise ShapeError("rounds as the machine likes; expects SINGLE_ROUND or DOUBLE_ROUND")
    if "DOUBLE_ROUND" in rounding:
        twice = where(
            emit(graph.GreaterEqualOp, centred, scalar(0, i64)), scalar(1 << 30, i64), -(1 << 30)
        )
        is_long = emit(graph.GreaterOp, shift, scalar(31, i64))
        half = add(half, where(is_long, twice, scalar(0, i64)))
    result = emit(graph.RightShiftOp, add(scaled, half), shift)
    unsigned = flags["output_unsigned"]
    shifted = add(result, zero_out % (1 << element.width) if unsigned else zero_out)
    conversion.define(op, saturated(shifted, element, unsigned))


def _widened(value: ir.Value, own: ir.IntegerType, unsigned: bool) -> ir.Value:
    i64 = ir.IntegerType.get_signless(64)
    wider = astype(value, i64)
    if not unsigned:
        return wider
    return emit(graph.BitwiseAndOp, wider, scalar((1 << own.width) - 1, i64))


def _by_channel(values: list[int], rank: int) -> ir.Value:
    """One value, or one for each index of the last dim."""
    i64 = ir.IntegerType.get_signless(64)
    if len(set(values)) == 1:
        return scalar(values[0], i64)
    return reshape(vector(values, i64), [*[1] * (rank - 1), len(values)])


@converts("tosa.table")
def table(conversion: Conversion, op: ir.Operation) -> None:
    """The element of a table for each of 8 bits."""
    value, entries = (conversion.value(each) for each in op.operands)
    if str(element_of(value)) != "i8":
        raise ShapeError(f"looks up elements of {element_of(value)}; expects i8")
    i64 = ir.IntegerType.get_signless(64)
    conversion.define(op, emit(graph.TakeOp, entries, add(astype(value, i64), 128), axis=0))
