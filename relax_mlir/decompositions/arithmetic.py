"""Operators on single elements: other divisions, roots, roundings, fewer bits of floats."""

from relax_mlir.bindings import ir
from relax_mlir.dialects import graph
from relax_mlir.dialects.graph import ShapeError

from .emit import (
    add,
    astype,
    binary,
    divide,
    element_of,
    emit,
    floor_divide,
    greater,
    is_integer,
    less,
    multiply,
    scalar,
    subtract,
    where,
    widen,
)

FORMATS = {"f16": (5, 10), "bf16": (8, 7), "f32": (8, 23), "f64": (11, 52)}
"""Bits of the exponent and of the mantissa of each float."""


def truncated_divide(a: ir.Value, b: ir.Value) -> ir.Value:
    """The quotient, rounded to 0; of integers by 0 it is 0.

    Source: ONNX `Div` of integers; ATen `div`, mode "trunc"; StableHLO `divide`.
    """
    if not is_integer(element_of(a)):
        return emit(graph.TruncOp, divide(a, b))
    quotient, rest = floor_divide(a, b), binary(graph.RemainderOp, a, b)
    return add(quotient, astype(_is_off(a, b, rest), element_of(a)))


def fmod(a: ir.Value, b: ir.Value) -> ir.Value:
    """What `truncated_divide` leaves of a, exactly, with the sign of a.

    Source: ONNX `Mod` with `fmod`; ATen `fmod`; StableHLO `remainder`; TVM `relax.mod`.
    """
    if is_integer(element_of(a)):
        rest = binary(graph.RemainderOp, a, b)
        return where(_is_off(a, b, rest), subtract(rest, b), rest)
    size = binary(graph.RemainderOp, emit(graph.AbsOp, a), emit(graph.AbsOp, b))
    return emit(graph.CopysignOp, size, a)


def _is_off(a: ir.Value, b: ir.Value, rest: ir.Value) -> ir.Value:
    """Whether the quotient of integers was rounded down to below 0."""
    differs = binary(graph.NotEqualOp, less(a, 0), less(b, 0))
    return emit(graph.LogicalAndOp, differs, binary(graph.NotEqualOp, rest, 0))


def cbrt(x: ir.Value) -> ir.Value:
    """The cube root, of either sign. Source: StableHLO `cbrt`."""
    _require_float(x)
    widened = widen(x)
    size = emit(graph.AbsOp, widened)
    first = emit(graph.PowerOp, size, scalar(1 / 3, element_of(widened)))
    # A step of Newton's, as a third is not a float.
    step = divide(subtract(first, divide(size, multiply(first, first))), 3)
    usual = emit(graph.LogicalAndOp, greater(size, 0), emit(graph.IsfiniteOp, size))
    root = where(usual, subtract(first, step), size)
    return astype(emit(graph.CopysignOp, root, widened), element_of(x))


def round_half_away(x: ir.Value) -> ir.Value:
    """The nearest integer, of two the one further from 0. Source: StableHLO `round_nearest_afz`."""
    _require_float(x)
    whole = emit(graph.TruncOp, x)
    rest = emit(graph.AbsOp, subtract(x, whole))
    up = add(whole, emit(graph.CopysignOp, scalar(1, element_of(x)), x))
    return where(binary(graph.GreaterEqualOp, rest, 0.5), up, whole)


def reduce_precision(x: ir.Value, exponent_bits: int, mantissa_bits: int) -> ir.Value:
    """The nearest value with so few bits, ties to even: infinite above all, 0 below normal ones.

    Source: StableHLO `reduce_precision`.
    """
    _require_float(x)
    element = element_of(x)
    exponent, mantissa = FORMATS[str(element)]
    if exponent_bits < 1 or mantissa_bits < 0:
        raise ShapeError(
            f"expects an exponent of a bit at least, but got {exponent_bits} and {mantissa_bits}"
        )
    width = 1 + exponent + mantissa
    integer = ir.IntegerType.get_signless(width)
    bits = emit(graph.BitcastOp, x, dtype=integer)
    sign = binary(graph.BitwiseAndOp, bits, -(1 << (width - 1)))
    size = binary(graph.BitwiseAndOp, bits, (1 << (width - 1)) - 1)
    if mantissa_bits < mantissa:
        dropped = mantissa - mantissa_bits
        odd = binary(graph.BitwiseAndOp, binary(graph.RightShiftOp, size, dropped), 1)
        size = add(add(size, odd), (1 << (dropped - 1)) - 1)
        size = binary(graph.BitwiseAndOp, size, -(1 << dropped))
    infinite = ((1 << exponent) - 1) << mantissa
    if exponent_bits < exponent:
        own, other = ((1 << (count - 1)) - 1 for count in (exponent, exponent_bits))
        above, below = (own + other + 1) << mantissa, (own - other + 1) << mantissa
        size = where(less(size, above), size, infinite)
        size = where(less(size, below), 0, size)
    rounded = emit(graph.BitcastOp, binary(graph.BitwiseOrOp, size, sign), dtype=element)
    return where(emit(graph.IsnanOp, x), x, rounded)


def _require_float(x: ir.Value) -> None:
    if str(element_of(x)) not in FORMATS:
        raise ShapeError(f"expects floats, but got {element_of(x)}")
