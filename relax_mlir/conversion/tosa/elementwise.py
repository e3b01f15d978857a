"""Element-wise ops, whose operands broadcast along dims of 1."""

from relax_mlir.bindings import ir
from relax_mlir.decompositions import truncated_divide
from relax_mlir.decompositions.emit import (
    add,
    astype,
    element_of,
    emit,
    maximum,
    minimum,
    multiply,
    scalar,
    subtract,
    where,
)
from relax_mlir.dialects import graph
from relax_mlir.dialects.graph import ShapeError

from ..function import Conversion
from ..registry import converts
from .constants import integer_of, require_propagation

_OPERATORS: dict[str, type[graph.InferredOp]] = {
    "abs": graph.AbsOp,
    "add": graph.AddOp,
    "bitwise_and": graph.BitwiseAndOp,
    "bitwise_not": graph.BitwiseNotOp,
    "bitwise_or": graph.BitwiseOrOp,
    "bitwise_xor": graph.BitwiseXorOp,
    "ceil": graph.CeilOp,
    "cos": graph.CosOp,
    "equal": graph.EqualOp,
    "erf": graph.ErfOp,
    "exp": graph.ExpOp,
    "floor": graph.FloorOp,
    "greater": graph.GreaterOp,
    "greater_equal": graph.GreaterEqualOp,
    "log": graph.LogOp,
    "logical_and": graph.LogicalAndOp,
    "logical_left_shift": graph.LeftShiftOp,
    "logical_not": graph.LogicalNotOp,
    "logical_or": graph.LogicalOrOp,
    "logical_right_shift": graph.LogicalRightShiftOp,
    "logical_xor": graph.LogicalXorOp,
    "maximum": graph.MaximumOp,
    "minimum": graph.MinimumOp,
    "pow": graph.PowerOp,
    "reciprocal": graph.ReciprocalOp,
    "rsqrt": graph.RsqrtOp,
    "select": graph.WhereOp,
    "sigmoid": graph.SigmoidOp,
    "sin": graph.SinOp,
    "sub": graph.SubtractOp,
    "tanh": graph.TanhOp,
}


@converts(*(f"tosa.{name}" for name in _OPERATORS))
def operator(conversion: Conversion, op: ir.Operation) -> None:
    """An op that is an operator."""
    require_propagation(op)
    operands = [conversion.value(value) for value in op.operands]
    conversion.define(op, emit(_OPERATORS[op.name.partition(".")[2]], *operands))


@converts("tosa.identity")
def identity(conversion: Conversion, op: ir.Operation) -> None:
    """The operand."""
    conversion.define(op, conversion.value(op.operands[0]))


@converts("tosa.mul")
def product(conversion: Conversion, op: ir.Operation) -> None:
    """A product, of i32 scaled by a power of two, and rounded to nearest, ties up."""
    a, b = (conversion.value(value) for value in list(op.operands)[:2])
    shift = integer_of(op.operands[2], "a shift") if len(op.operands) == 3 else 0
    element = ir.RankedTensorType(op.results[0].type).element_type
    if not shift:
        conversion.define(op, multiply(astype(a, element), astype(b, element)))
        return
    if str(element_of(a)) != "i32" or not 0 < shift < 63:
        raise ShapeError(f"has elements of {element_of(a)} and a shift of {shift}; expects i32")
    i64 = ir.IntegerType.get_signless(64)
    whole = add(multiply(astype(a, i64), astype(b, i64)), 1 << (shift - 1))
    shifted = emit(graph.RightShiftOp, whole, scalar(shift, i64))
    conversion.define(op, astype(shifted, element))


@converts("tosa.intdiv")
def quotient(conversion: Conversion, op: ir.Operation) -> None:
    """A quotient rounded towards 0."""
    conversion.define(op, truncated_divide(*[conversion.value(value) for value in op.operands]))


@converts("tosa.arithmetic_right_shift")
def shifted(conversion: Conversion, op: ir.Operation) -> None:
    """A shift that keeps the sign, rounded to nearest if it says so."""
    value, count = (conversion.value(each) for each in op.operands)
    result = emit(graph.RightShiftOp, value, count)
    if ir.BoolAttr(op.attributes["round"]).value:
        least = emit(graph.RightShiftOp, value, subtract(count, 1))
        bit = emit(graph.BitwiseAndOp, least, scalar(1, element_of(value)))
        rounded = where(emit(graph.GreaterOp, count, scalar(0, element_of(count))), bit, 0)
        result = add(result, rounded)
    conversion.define(op, result)


@converts("tosa.clamp")
def clamp(conversion: Conversion, op: ir.Operation) -> None:
    """The nearest element between two bounds."""
    require_propagation(op)
    value = conversion.value(op.operands[0])
    low, high = (op.attributes[name].value for name in ("min_val", "max_val"))
    conversion.define(op, minimum(maximum(value, low), high))


@converts("tosa.negate")
def negate(conversion: Conversion, op: ir.Operation) -> None:
    """The element with the other sign; integers, less their zero points, saturate."""
    value, *zeros = op.operands
    new = conversion.value(value)
    element = element_of(new)
    if not isinstance(element, ir.IntegerType):
        conversion.define(op, emit(graph.NegativeOp, new))
        return
    own, other = (integer_of(each, "a zero point") for each in zeros) if zeros else (0, 0)
    i64 = ir.IntegerType.get_signless(64)
    exact = subtract(own + other, astype(new, i64))
    conversion.define(op, saturated(exact, element))


def saturated(value: ir.Value, element: ir.IntegerType, unsigned: bool = False) -> ir.Value:
    """Integers of 64 bits as the nearest ones of a type."""
    half = 1 << (element.width - 1)
    low, high = (0, 2 * half - 1) if unsigned else (-half, half - 1)
    return astype(minimum(maximum(value, low), high), element)


@converts("tosa.clz")
def leading_zeros(conversion: Conversion, op: ir.Operation) -> None:
    """The count of zeros in front of the first one."""
    value = conversion.value(op.operands[0])
    element = element_of(value)
    assert isinstance(element, ir.IntegerType)
    below, step = value, 1
    while step < element.width:
        shifted = emit(graph.LogicalRightShiftOp, below, scalar(step, element))
        below, step = emit(graph.BitwiseOrOp, below, shifted), 2 * step
    ones = astype(emit(graph.PopcountOp, below), element)
    conversion.define(op, subtract(element.width, ones))


@converts("tosa.cast")
def cast(conversion: Conversion, op: ir.Operation) -> None:
    """The elements in another type: floats become the nearest integer, ties the even one."""
    value = conversion.value(op.operands[0])
    element = ir.RankedTensorType(op.results[0].type).element_type
    to_integer = isinstance(element, ir.IntegerType) and element.width > 1
    if to_integer and not isinstance(element_of(value), ir.IntegerType):
        value = emit(graph.RoundOp, value)
    if str(element_of(value)) != "i1" and str(element) == "i1":
        zero = scalar(0, element_of(value))
        conversion.define(op, emit(graph.NotEqualOp, value, zero))
        return
    conversion.define(op, astype(value, element))
