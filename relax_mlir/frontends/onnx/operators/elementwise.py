"""Arithmetic, comparisons, logic and bits, element by element."""

from collections.abc import Callable

from relax_mlir.bindings import ir
from relax_mlir.decompositions import clip, fmod, truncated_divide
from relax_mlir.decompositions.emit import (
    add,
    astype,
    binary,
    element_of,
    emit,
    is_integer,
    less,
    maximum,
    minimum,
    where,
)
from relax_mlir.decompositions.written_out import written_out
from relax_mlir.dialects import graph
from relax_mlir.errors import ModelError

from ..node import Node
from ..registry import operator
from .broadcasting import aligned

UNARY: dict[str, type[graph.InferredOp]] = {
    "Abs": graph.AbsOp,
    "Acos": graph.AcosOp,
    "Acosh": graph.AcoshOp,
    "Asin": graph.AsinOp,
    "Asinh": graph.AsinhOp,
    "Atan": graph.AtanOp,
    "Atanh": graph.AtanhOp,
    "BitwiseNot": graph.BitwiseNotOp,
    "Ceil": graph.CeilOp,
    "Cos": graph.CosOp,
    "Cosh": graph.CoshOp,
    "Erf": graph.ErfOp,
    "Exp": graph.ExpOp,
    "Floor": graph.FloorOp,
    "IsNaN": graph.IsnanOp,
    "Log": graph.LogOp,
    "Neg": graph.NegativeOp,
    "Not": graph.LogicalNotOp,
    "Round": graph.RoundOp,
    "Sigmoid": graph.SigmoidOp,
    "Sign": graph.SignOp,
    "Sin": graph.SinOp,
    "Sinh": graph.SinhOp,
    "Sqrt": graph.SqrtOp,
    "Tan": graph.TanOp,
    "Tanh": graph.TanhOp,
}

BINARY: dict[str, type[graph.InferredOp]] = {
    "Add": graph.AddOp,
    "And": graph.LogicalAndOp,
    "BitwiseAnd": graph.BitwiseAndOp,
    "BitwiseOr": graph.BitwiseOrOp,
    "BitwiseXor": graph.BitwiseXorOp,
    "Equal": graph.EqualOp,
    "Greater": graph.GreaterOp,
    "GreaterOrEqual": graph.GreaterEqualOp,
    "Less": graph.LessOp,
    "LessOrEqual": graph.LessEqualOp,
    "Mul": graph.MultiplyOp,
    "Or": graph.LogicalOrOp,
    "Sub": graph.SubtractOp,
    "Xor": graph.LogicalXorOp,
}

VARIADIC: dict[str, Callable[[ir.Value, ir.Value], ir.Value]] = {
    "Max": maximum,
    "Min": minimum,
    "Sum": add,
}


@operator(*UNARY)
def unary(node: Node) -> ir.Value:
    """One operator of the dialect."""
    return emit(UNARY[node.op], node.tensor(0))


@operator("Reciprocal")
def reciprocal(node: Node) -> ir.Value:
    """1 / x."""
    return binary(graph.DivideOp, 1, node.tensor(0))


@operator("IsInf")
def is_inf(node: Node) -> ir.Value:
    """Infinite, of the signs that are asked for."""
    x = node.tensor(0)
    infinite = emit(graph.IsinfOp, x)
    negative, positive = node.attribute("detect_negative", 1), node.attribute("detect_positive", 1)
    if negative and positive:
        return infinite
    sign = less(x, 0) if negative else emit(graph.LogicalNotOp, less(x, 0))
    chosen = emit(graph.LogicalAndOp, infinite, sign)
    nothing = emit(graph.LogicalAndOp, infinite, emit(graph.LogicalNotOp, infinite))
    return chosen if negative or positive else nothing


@operator(*BINARY, since=7)
def two(node: Node) -> ir.Value:
    """One operator of the dialect, whose operands broadcast."""
    return _whole(emit(BINARY[node.op], *aligned(node.tensors())))


def _whole(value: ir.Value) -> ir.Value:
    """A product or a quotient, or the activation that it is the last step of."""
    is_step = isinstance(value.owner.opview, graph.MultiplyOp | graph.DivideOp)
    return (written_out(value) if is_step else None) or value


@operator("Div", since=7)
def divide(node: Node) -> ir.Value:
    """The quotient; of integers towards zero."""
    a, b = aligned(node.tensors())
    return (
        truncated_divide(a, b) if is_integer(element_of(a)) else _whole(emit(graph.DivideOp, a, b))
    )


@operator("Mod", since=10)
def modulo(node: Node) -> ir.Value:
    """What is left of a division, with the sign of the divisor, or of the dividend for fmod."""
    a, b = aligned(node.tensors())
    return fmod(a, b) if node.flag("fmod") else emit(graph.RemainderOp, a, b)


@operator("Pow", since=7)
def power(node: Node) -> ir.Value:
    """A power, in the type of the base."""
    base, exponent = aligned(node.tensors())
    element = element_of(base)
    if element_of(exponent) == element:
        return emit(graph.PowerOp, base, exponent)
    if is_integer(element) and not is_integer(element_of(exponent)):
        widened = ir.F64Type.get()
        return astype(
            emit(graph.PowerOp, astype(base, widened), astype(exponent, widened)), element
        )
    return emit(graph.PowerOp, base, astype(exponent, element))


@operator(*VARIADIC, since=6)
def variadic(node: Node) -> ir.Value:
    """One operator between all operands."""
    first, *rest = aligned(node.tensors())
    for other in rest:
        first = VARIADIC[node.op](first, other)
    return first


@operator("Mean", since=6)
def mean(node: Node) -> ir.Value:
    """The sum of all operands, divided by their count."""
    first, *rest = aligned(node.tensors())
    for other in rest:
        first = add(first, other)
    return binary(graph.DivideOp, first, 1 + len(rest))


@operator("BitShift")
def bit_shift(node: Node) -> ir.Value:
    """Bits shifted up or down."""
    directions = {"LEFT": graph.LeftShiftOp, "RIGHT": graph.RightShiftOp}
    direction = node.required("direction")
    if direction not in directions:
        raise ModelError(f"has direction '{direction}', which is neither LEFT nor RIGHT")
    return emit(directions[direction], node.tensor(0), node.tensor(1))


@operator("Clip")
def clip_(node: Node) -> ir.Value:
    """Elements within bounds, attributes of old and operands of new versions."""
    x = node.tensor(0)
    if node.version < 11:
        low, high = node.attribute("min"), node.attribute("max")
        return clip(x, low, high)
    return clip(x, node.optional(1), node.optional(2))


@operator("Where")
def where_(node: Node) -> ir.Value:
    """Elements of one of two tensors."""
    return where(*aligned(node.tensors()))


@operator("Identity")
def identity(node: Node) -> object:
    """The operand."""
    return node.value(0)
