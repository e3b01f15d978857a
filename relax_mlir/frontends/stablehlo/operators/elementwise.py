"""Arithmetic, comparisons, logic and bits, element by element."""

from relax_mlir import decompositions as d
from relax_mlir.bindings import ir
from relax_mlir.decompositions.emit import (
    astype,
    binary,
    element_of,
    emit,
    is_integer,
    maximum,
    minimum,
    scalar,
    subtract,
    where,
)
from relax_mlir.decompositions.written_out import written_out
from relax_mlir.dialects import graph
from relax_mlir.errors import ModelError

from ..node import Node
from ..registry import Value, operator

UNARY: dict[str, type[graph.InferredOp]] = {
    "ceil": graph.CeilOp,
    "cosine": graph.CosOp,
    "exponential": graph.ExpOp,
    "exponential_minus_one": graph.Expm1Op,
    "floor": graph.FloorOp,
    "is_finite": graph.IsfiniteOp,
    "log": graph.LogOp,
    "log_plus_one": graph.Log1pOp,
    "logistic": graph.SigmoidOp,
    "negate": graph.NegativeOp,
    "popcnt": graph.PopcountOp,
    "round_nearest_even": graph.RoundOp,
    "rsqrt": graph.RsqrtOp,
    "sine": graph.SinOp,
    "sqrt": graph.SqrtOp,
    "tan": graph.TanOp,
    "tanh": graph.TanhOp,
}

BINARY: dict[str, type[graph.InferredOp]] = {
    "add": graph.AddOp,
    "and": graph.BitwiseAndOp,
    "atan2": graph.Atan2Op,
    "maximum": graph.MaximumOp,
    "minimum": graph.MinimumOp,
    "multiply": graph.MultiplyOp,
    "or": graph.BitwiseOrOp,
    "power": graph.PowerOp,
    "shift_left": graph.LeftShiftOp,
    "shift_right_logical": graph.LogicalRightShiftOp,
    "subtract": graph.SubtractOp,
    "xor": graph.BitwiseXorOp,
}

LOGIC: dict[str, type[graph.InferredOp]] = {
    "add": graph.LogicalOrOp,
    "and": graph.LogicalAndOp,
    "maximum": graph.LogicalOrOp,
    "minimum": graph.LogicalAndOp,
    "multiply": graph.LogicalAndOp,
    "or": graph.LogicalOrOp,
    "xor": graph.LogicalXorOp,
}
"""What arithmetic of truth values is."""

RELATIONS: dict[str, type[graph.InferredOp]] = {
    "EQ": graph.EqualOp,
    "GE": graph.GreaterEqualOp,
    "GT": graph.GreaterOp,
    "LE": graph.LessEqualOp,
    "LT": graph.LessOp,
    "NE": graph.NotEqualOp,
}


def is_bool(value: ir.Value) -> bool:
    """Whether elements are truth values."""
    return str(element_of(value)) == "i1"


def is_unsigned(value: ir.Value) -> bool:
    """Whether elements are integers without a sign."""
    element = element_of(value)
    return isinstance(element, ir.IntegerType) and element.is_unsigned


@operator(*UNARY, elementwise=True)
def unary(node: Node) -> ir.Value:
    """One operator of the dialect."""
    return emit(UNARY[node.name], node.tensor(0))


@operator("abs", "sign", elementwise=True)
def of_sign(node: Node) -> ir.Value:
    """The absolute value, or the sign."""
    x = node.tensor(0)
    if not is_unsigned(x):
        return emit(graph.AbsOp if node.name == "abs" else graph.SignOp, x)
    return x if node.name == "abs" else minimum(x, 1)


@operator("not", elementwise=True)
def not_(node: Node) -> ir.Value:
    """The opposite, of each bit."""
    x = node.tensor(0)
    return emit(graph.LogicalNotOp if is_bool(x) else graph.BitwiseNotOp, x)


@operator("cbrt", elementwise=True)
def cbrt(node: Node) -> ir.Value:
    """The cube root."""
    return d.cbrt(node.tensor(0))


@operator("round_nearest_afz", elementwise=True)
def round_half_away(node: Node) -> ir.Value:
    """The nearest integer, halves away from 0."""
    return d.round_half_away(node.tensor(0))


@operator("reduce_precision", elementwise=True)
def reduce_precision(node: Node) -> ir.Value:
    """The nearest value of fewer bits."""
    bits = node.integer("exponent_bits"), node.integer("mantissa_bits")
    return d.reduce_precision(node.tensor(0), *bits)


@operator("count_leading_zeros", elementwise=True)
def count_leading_zeros(node: Node) -> ir.Value:
    """The zeros above the highest bit that is set."""
    x = node.tensor(0)
    element = element_of(x)
    assert isinstance(element, ir.IntegerType)
    shift = 1
    while shift < element.width:
        shifted = binary(graph.LogicalRightShiftOp, x, shift)
        x = emit(graph.BitwiseOrOp, x, shifted)
        shift *= 2
    return subtract(element.width, emit(graph.PopcountOp, x))


@operator("convert", elementwise=True)
def convert(node: Node) -> ir.Value:
    """Elements of another type; what is not 0 is true."""
    return converted(node.tensor(0), node.result_element)


def converted(x: ir.Value, element: ir.Type) -> ir.Value:
    """Elements of another type; what is not 0 is true."""
    if str(element) == "i1" and not is_bool(x):
        return binary(graph.NotEqualOp, x, 0)
    return astype(x, element)


@operator("bitcast_convert", elementwise=True)
def bitcast(node: Node) -> ir.Value:
    """The bits as elements of another type."""
    x = node.tensor(0)
    if str(node.result_element) == node.element():
        return x
    return d.bitcast(x, node.result_element)


@operator(*BINARY, elementwise=True)
def two(node: Node) -> ir.Value:
    """One operator of the dialect, or the activation that a product is the last step of."""
    result = combined(node.name, *node.tensors())
    return (written_out(result) if node.name == "multiply" else None) or result


def combined(name: str, a: ir.Value, b: ir.Value) -> ir.Value:
    """An op of two tensors, by its name."""
    if is_bool(a):
        if name not in LOGIC:
            raise ModelError("has truth values, of which it is not supported")
        return emit(LOGIC[name], a, b)
    if name == "power" and is_integer(element_of(a)):
        return integer_power(a, b)
    return emit(BINARY[name], a, b)


def integer_power(base: ir.Value, exponent: ir.Value) -> ir.Value:
    """A power that wraps, by squares; of a negative exponent 0, but for bases of 1 and -1."""
    element = element_of(base)
    assert isinstance(element, ir.IntegerType)
    result, square, bits = scalar(1, element), base, exponent
    for _ in range(element.width):
        odd = binary(graph.EqualOp, binary(graph.BitwiseAndOp, bits, 1), 1)
        result = emit(graph.MultiplyOp, result, where(odd, square, 1))
        square = emit(graph.MultiplyOp, square, square)
        bits = binary(graph.LogicalRightShiftOp, bits, 1)
    if element.is_unsigned:
        return result
    odd = binary(graph.EqualOp, binary(graph.BitwiseAndOp, exponent, 1), 1)
    inverse = where(binary(graph.EqualOp, base, 1), 1, scalar(0, element))
    inverse = where(binary(graph.EqualOp, base, -1), where(odd, scalar(-1, element), 1), inverse)
    return where(binary(graph.LessOp, exponent, 0), inverse, result)


@operator("divide", elementwise=True)
def divide(node: Node) -> ir.Value:
    """The quotient; of integers rounded to 0, and all bits for a divisor of 0."""
    a, b = node.tensors()
    if not is_integer(element_of(a)):
        return emit(graph.DivideOp, a, b)
    every = emit(graph.BitwiseNotOp, scalar(0, element_of(a)))
    quotient = emit(graph.FloorDivideOp, a, b) if is_unsigned(a) else d.truncated_divide(a, b)
    return where(binary(graph.EqualOp, b, 0), every, quotient)


@operator("remainder", elementwise=True)
def remainder(node: Node) -> ir.Value:
    """What a division leaves, with the sign of the dividend; all of it for a divisor of 0."""
    a, b = node.tensors()
    if not is_integer(element_of(a)):
        return d.fmod(a, b)
    rest = emit(graph.RemainderOp, a, b) if is_unsigned(a) else d.fmod(a, b)
    return where(binary(graph.EqualOp, b, 0), a, rest)


@operator("shift_right_arithmetic", elementwise=True)
def shift_right(node: Node) -> ir.Value:
    """Bits shifted down, copies of the highest one coming in."""
    a, b = node.tensors()
    element = element_of(a)
    signed = ir.IntegerType.get_signless(element.width)  # type: ignore[attr-defined]
    shifted = emit(graph.RightShiftOp, d.bitcast(a, signed), _amount(b, signed))
    return d.bitcast(shifted, element)


def _amount(b: ir.Value, signed: ir.IntegerType) -> ir.Value:
    """A shift, in a signed type; what is above its values shifts everything out."""
    if not is_unsigned(b):
        return b
    return d.bitcast(minimum(b, signed.width), signed)


@operator("compare", elementwise=True)
def compare(node: Node) -> ir.Value:
    """A relation; in total order -NaN < -infinity < -0 < 0 < infinity < NaN."""
    return related(node, *node.tensors())


def related(node: Node, a: ir.Value, b: ir.Value) -> ir.Value:
    """A relation of two tensors, by the attributes of an op."""
    direction = node.keyword("comparison_direction")
    if node.keyword("compare_type") == "TOTALORDER" and not is_integer(element_of(a)):
        a, b = ordered(a), ordered(b)
    if is_bool(a) and direction not in ("EQ", "NE"):
        a, b = (astype(each, ir.IntegerType.get_signless(8)) for each in (a, b))
    return emit(RELATIONS[direction], a, b)


def ordered(x: ir.Value) -> ir.Value:
    """Integers that are in the total order of floats."""
    element = element_of(x)
    integer = ir.IntegerType.get_signless(element.width)  # type: ignore[attr-defined]
    bits = d.bitcast(x, integer)
    least = -(1 << (integer.width - 1))
    flipped = binary(graph.BitwiseXorOp, emit(graph.BitwiseNotOp, bits), scalar(least, integer))
    return where(binary(graph.LessOp, bits, 0), flipped, bits)


@operator("clamp", elementwise=True)
def clamp(node: Node) -> ir.Value:
    """Elements within bounds."""
    low, x, high = node.tensors()
    return minimum(maximum(low, x), high)


@operator("select", elementwise=True, by_part=True)
def select(node: Node) -> ir.Value:
    """Elements of one of two tensors."""
    return where(*node.tensors())


@operator("optimization_barrier", takes_pairs=True)
def barrier(node: Node) -> tuple[Value, ...]:
    """The operands, as they are."""
    return tuple(node.operands)
