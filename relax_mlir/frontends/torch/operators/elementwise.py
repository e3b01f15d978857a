"""Arithmetic, comparisons, logic and activations, element by element."""

import math
from collections.abc import Callable
from typing import Any

from relax_mlir import decompositions as d
from relax_mlir.bindings import ir
from relax_mlir.decompositions.emit import add as plus
from relax_mlir.decompositions.emit import (
    astype,
    binary,
    divide,
    element_of,
    emit,
    is_integer,
    maximum,
    minimum,
    multiply,
    scalar,
    subtract,
)
from relax_mlir.decompositions.emit import where as choose
from relax_mlir.dialects import graph
from relax_mlir.errors import ModelError

from ..adapters import by_parts_of, of_truth, unchanged
from ..call import Call
from ..registry import operator

UNARY: dict[str, type[graph.InferredOp]] = {
    "abs": graph.AbsOp,
    "acos": graph.AcosOp,
    "acosh": graph.AcoshOp,
    "asin": graph.AsinOp,
    "asinh": graph.AsinhOp,
    "atan": graph.AtanOp,
    "atanh": graph.AtanhOp,
    "bitwise_not": graph.BitwiseNotOp,
    "ceil": graph.CeilOp,
    "cos": graph.CosOp,
    "cosh": graph.CoshOp,
    "erf": graph.ErfOp,
    "exp": graph.ExpOp,
    "expm1": graph.Expm1Op,
    "floor": graph.FloorOp,
    "log": graph.LogOp,
    "log10": graph.Log10Op,
    "log1p": graph.Log1pOp,
    "log2": graph.Log2Op,
    "_neg_view": graph.NegativeOp,
    "neg": graph.NegativeOp,
    "reciprocal": graph.ReciprocalOp,
    "relu": graph.ReluOp,
    "round": graph.RoundOp,
    "rsqrt": graph.RsqrtOp,
    "sigmoid": graph.SigmoidOp,
    "sign": graph.SignOp,
    "silu": graph.SiluOp,
    "sin": graph.SinOp,
    "sinh": graph.SinhOp,
    "sqrt": graph.SqrtOp,
    "square": graph.SquareOp,
    "tan": graph.TanOp,
    "tanh": graph.TanhOp,
    "trunc": graph.TruncOp,
}
OF_INTEGERS = {"_neg_view", "abs", "bitwise_not", "neg", "relu", "sign", "square"}
ROUNDINGS = {"ceil", "floor", "round", "trunc"}

PREDICATES: dict[str, type[graph.InferredOp]] = {
    "isfinite": graph.IsfiniteOp,
    "isinf": graph.IsinfOp,
    "isnan": graph.IsnanOp,
    "signbit": graph.SignbitOp,
}


def _unary(name: str) -> Callable[..., ir.Value]:
    def build(call: Call, x: ir.Value) -> ir.Value:
        if name in ROUNDINGS and is_integer(element_of(x)):
            return x
        return emit(UNARY[name], x if name in OF_INTEGERS else call.tensor(x, call.element))

    return build


for _name in UNARY:
    operator(_name)(_unary(_name))


def _predicate(name: str) -> Callable[..., ir.Value]:
    def build(call: Call, x: ir.Value) -> ir.Value:
        if is_integer(element_of(x)):
            x = astype(x, ir.F64Type.get())
        return emit(PREDICATES[name], x)

    return build


for _name in PREDICATES:
    operator(_name)(_predicate(_name))


@operator("logical_not", pairs=of_truth)
def logical_not(call: Call, x: ir.Value) -> ir.Value:
    """Whether an element is 0."""
    return (
        binary(graph.EqualOp, x, 0) if str(element_of(x)) != "i1" else emit(graph.LogicalNotOp, x)
    )


ARITHMETIC: dict[str, type[graph.InferredOp]] = {
    "atan2": graph.Atan2Op,
    "bitwise_and": graph.BitwiseAndOp,
    "bitwise_or": graph.BitwiseOrOp,
    "bitwise_xor": graph.BitwiseXorOp,
    "bitwise_left_shift": graph.LeftShiftOp,
    "bitwise_right_shift": graph.RightShiftOp,
    "__lshift__": graph.LeftShiftOp,
    "__rshift__": graph.RightShiftOp,
    "copysign": graph.CopysignOp,
    "hypot": graph.HypotOp,
    "logaddexp": graph.LogaddexpOp,
    "maximum": graph.MaximumOp,
    "minimum": graph.MinimumOp,
    "remainder": graph.RemainderOp,
}


def _arithmetic(op: type[graph.InferredOp]) -> Callable[..., ir.Value]:
    def build(call: Call, a: Any, b: Any) -> ir.Value:
        element = call.element
        return emit(op, call.tensor(a, element), call.tensor(b, element))

    return build


for _name, _op in ARITHMETIC.items():
    operator(
        *(
            f"{_name}{kind}"
            for kind in ("", ".Tensor", ".Scalar", ".Scalar_Tensor", ".Tensor_Scalar")
        )
    )(_arithmetic(_op))


def _computed(call: Call, build: Callable[..., ir.Value], *values: Any) -> ir.Value:
    """An op of the type of the result; of f32 where a scalar is not of half precision, as it is."""
    element = call.element
    if all(isinstance(value, ir.Value) or call.holds(value) for value in values):
        return build(*(call.tensor(value, element) for value in values))
    single = ir.F32Type.get()
    return astype(build(*(call.tensor(value, single) for value in values)), element)


def _scaled(op: Callable[..., ir.Value], call: Call, a: Any, b: Any, alpha: Any) -> ir.Value:
    if alpha == 1:
        return _computed(call, op, a, b)
    return _computed(call, lambda x, y, by: op(x, multiply(y, by)), a, b, alpha)


@operator("add.Tensor", "add.Scalar")
def add(call: Call, a: Any, b: Any, alpha: Any = 1) -> ir.Value:
    """a + alpha * b."""
    if str(call.element) == "i1":
        return emit(graph.LogicalOrOp, call.tensor(a), call.tensor(b))
    return _scaled(plus, call, a, b, alpha)


@operator("sub.Tensor", "sub.Scalar")
def sub(call: Call, a: Any, b: Any, alpha: Any = 1) -> ir.Value:
    """a - alpha * b."""
    return _scaled(subtract, call, a, b, alpha)


@operator("rsub.Tensor", "rsub.Scalar")
def rsub(call: Call, a: Any, b: Any, alpha: Any = 1) -> ir.Value:
    """b - alpha * a."""
    return sub(call, b, a, alpha)


@operator("mul.Tensor", "mul.Scalar")
def mul(call: Call, a: Any, b: Any) -> ir.Value:
    """The product."""
    if str(call.element) == "i1":
        return emit(graph.LogicalAndOp, call.tensor(a), call.tensor(b))
    return _computed(call, multiply, a, b)


@operator("div.Tensor", "div.Scalar", "true_divide.Tensor")
def div(call: Call, a: Any, b: Any) -> ir.Value:
    """The quotient, of floats."""
    return _computed(call, divide, a, b)


@operator("div.Tensor_mode", "div.Scalar_mode")
def div_mode(call: Call, a: Any, b: Any, rounding_mode: str | None = None) -> ir.Value:
    """The quotient, rounded."""
    x, y = call.tensor(a, call.element), call.tensor(b, call.element)
    if rounding_mode is None:
        return binary(graph.DivideOp, x, y)
    return emit(graph.FloorDivideOp, x, y) if rounding_mode == "floor" else d.truncated_divide(x, y)


@operator("floor_divide", "floor_divide.Scalar")
def floor_divide(call: Call, a: Any, b: Any) -> ir.Value:
    """The quotient, rounded down."""
    return emit(graph.FloorDivideOp, call.tensor(a, call.element), call.tensor(b, call.element))


@operator("fmod.Tensor", "fmod.Scalar")
def fmod(call: Call, a: Any, b: Any) -> ir.Value:
    """What a division leaves, with the sign of a."""
    return d.fmod(call.tensor(a, call.element), call.tensor(b, call.element))


@operator("nextafter")
def nextafter(call: Call, a: ir.Value, b: ir.Value) -> ir.Value:
    """The float next to a in the direction of b."""
    element = call.element
    bits = ir.IntegerType.get_signless(ir.FloatType(element).width)
    a, b = call.tensor(a, element), call.tensor(b, element)
    code = emit(graph.BitcastOp, a, dtype=bits)
    is_up, is_positive = binary(graph.LessOp, a, b), binary(graph.GreaterOp, a, 0)
    step = choose(binary(graph.EqualOp, is_up, is_positive), scalar(1, bits), scalar(-1, bits))
    near = emit(graph.BitcastOp, plus(code, step), dtype=element)
    least = emit(graph.BitcastOp, scalar(1, bits), dtype=element)
    near = choose(binary(graph.EqualOp, a, 0), emit(graph.CopysignOp, least, b), near)
    near = choose(binary(graph.EqualOp, a, b), b, near)
    are_equal = binary(graph.EqualOp, a, a), binary(graph.EqualOp, b, b)  # unless they are NaN
    return choose(emit(graph.LogicalAndOp, *are_equal), near, math.nan)


@operator("angle")
def angle(call: Call, x: ir.Value) -> ir.Value:
    """Of real elements: 0, or pi below 0; NaN of NaN."""
    x = call.tensor(x, call.element)
    is_real = binary(graph.EqualOp, x, x)
    return choose(is_real, choose(binary(graph.LessOp, x, 0), scalar(math.pi, call.element), 0), x)


@operator("pow.Tensor_Tensor", "pow.Tensor_Scalar", "pow.Scalar")
def power(call: Call, a: Any, b: Any) -> ir.Value:
    """A power."""
    if isinstance(a, ir.Value) and b in (1, 2, 0.5):
        x = call.tensor(a, call.element)
        return {1: lambda: x, 2: lambda: multiply(x, x), 0.5: lambda: emit(graph.SqrtOp, x)}[b]()
    return emit(graph.PowerOp, call.tensor(a, call.element), call.tensor(b, call.element))


COMPARISONS: dict[str, type[graph.InferredOp]] = {
    "eq": graph.EqualOp,
    "ge": graph.GreaterEqualOp,
    "gt": graph.GreaterOp,
    "le": graph.LessEqualOp,
    "lt": graph.LessOp,
    "ne": graph.NotEqualOp,
}
LOGIC: dict[str, type[graph.InferredOp]] = {
    "logical_and": graph.LogicalAndOp,
    "logical_or": graph.LogicalOrOp,
    "logical_xor": graph.LogicalXorOp,
}


def _comparison(op: type[graph.InferredOp]) -> Callable[..., ir.Value]:
    return lambda call, a, b: emit(op, *call.common(a, b))


def _logic(op: type[graph.InferredOp]) -> Callable[..., ir.Value]:
    def build(call: Call, a: Any, b: Any) -> ir.Value:
        i1 = ir.IntegerType.get_signless(1)
        return emit(op, call.tensor(a, i1), call.tensor(b, i1))

    return build


for _name, _op in COMPARISONS.items():
    operator(f"{_name}.Tensor", f"{_name}.Scalar")(_comparison(_op))
for _name, _op in LOGIC.items():
    operator(_name, pairs=of_truth)(_logic(_op))


@operator(
    "where.self", "where.ScalarOther", "where.ScalarSelf", "where.Scalar", pairs=by_parts_of(1, 2)
)
def where(call: Call, condition: ir.Value, a: Any, b: Any) -> ir.Value:
    """Elements of one of two tensors."""
    i1 = ir.IntegerType.get_signless(1)
    x, y = call.tensor(a, call.element), call.tensor(b, call.element)
    return choose(call.tensor(condition, i1), x, y)


@operator("masked_fill.Scalar", "masked_fill.Tensor", pairs=by_parts_of(0, 2))
def masked_fill(call: Call, x: ir.Value, mask: ir.Value, value: Any) -> ir.Value:
    """A value where a mask is true."""
    return choose(mask, call.tensor(value, call.element), x)


@operator("clamp", "clamp.Tensor")
def clamp(call: Call, x: ir.Value, min: Any = None, max: Any = None) -> ir.Value:
    """Elements within bounds."""
    x = call.tensor(x, call.element)
    if min is not None:
        x = maximum(x, call.tensor(min, call.element))
    return x if max is None else minimum(x, call.tensor(max, call.element))


@operator("clamp_min", "clamp_min.Tensor")
def clamp_min(call: Call, x: ir.Value, bound: Any) -> ir.Value:
    """Elements not below a bound."""
    return clamp(call, x, bound)


@operator("clamp_max", "clamp_max.Tensor")
def clamp_max(call: Call, x: ir.Value, bound: Any) -> ir.Value:
    """Elements not above a bound."""
    return clamp(call, x, None, bound)


@operator("lerp.Tensor", "lerp.Scalar")
def lerp(call: Call, a: ir.Value, b: ir.Value, weight: Any) -> ir.Value:
    """a + weight * (b - a)."""
    return plus(a, multiply(call.tensor(weight, call.element), subtract(b, a)))


@operator("addcmul")
def addcmul(call: Call, x: ir.Value, a: ir.Value, b: ir.Value, value: Any = 1) -> ir.Value:
    """x + value * a * b."""
    return plus(x, multiply(multiply(a, b), call.tensor(value, call.element)))


@operator("addcdiv")
def addcdiv(call: Call, x: ir.Value, a: ir.Value, b: ir.Value, value: Any = 1) -> ir.Value:
    """x + value * a / b."""
    return plus(x, multiply(binary(graph.DivideOp, a, b), call.tensor(value, call.element)))


@operator("gelu")
def gelu(call: Call, x: ir.Value, approximate: str = "none") -> ir.Value:
    """x * P(X <= x) of a normal X."""
    return emit(graph.GeluOp if approximate == "none" else graph.GeluTanhOp, x)


@operator("hardtanh")
def hardtanh(call: Call, x: ir.Value, low: Any = -1, high: Any = 1) -> ir.Value:
    """Elements within bounds."""
    return clamp(call, x, low, high)


@operator("relu6")
def relu6(call: Call, x: ir.Value) -> ir.Value:
    """Elements from 0 to 6."""
    return clamp(call, x, 0, 6)


@operator("leaky_relu")
def leaky_relu(call: Call, x: ir.Value, slope: float = 0.01) -> ir.Value:
    """Less of what is negative."""
    return d.leaky_relu(x, slope)


@operator("rrelu_with_noise", "rrelu_with_noise_functional")
def rrelu(
    call: Call,
    x: ir.Value,
    noise: ir.Value,
    lower: float = 1 / 8,
    upper: float = 1 / 3,
    training: bool = False,
    *_: Any,
) -> Any:
    """The same with the mean of two slopes; in training it is random."""
    if training:
        raise ModelError("is in training, which is random; call model.eval() first")
    result = d.leaky_relu(x, (lower + upper) / 2)
    return (result, noise) if isinstance(call.value, list | tuple) else result


@operator("elu")
def elu(call: Call, x: ir.Value, alpha: Any = 1, scale: Any = 1, input_scale: Any = 1) -> ir.Value:
    """An exponential below zero."""
    negative = multiply(emit(graph.Expm1Op, multiply(minimum(x, 0), input_scale)), alpha * scale)
    return choose(binary(graph.GreaterOp, x, 0), multiply(x, scale), negative)


@operator("softplus")
def softplus(call: Call, x: ir.Value, beta: Any = 1, threshold: Any = 20) -> ir.Value:
    """A smooth maximum of 0 and x, which is x above a threshold."""
    above = binary(graph.GreaterOp, multiply(x, beta), threshold)
    return choose(above, x, d.softplus(x, beta))


PLAIN: dict[str, Callable[[ir.Value], ir.Value]] = {
    "hardsigmoid": d.hardsigmoid,
    "hardswish": d.hardswish,
    "mish": d.mish,
    "log_sigmoid": d.log_sigmoid,
}


def _plain(function: Callable[[ir.Value], ir.Value]) -> Callable[..., ir.Value]:
    return lambda call, x: function(x)


for _name, _function in PLAIN.items():
    operator(_name)(_plain(_function))


@operator("exp2")
def exp2(call: Call, x: ir.Value) -> ir.Value:
    """A power of 2."""
    return binary(graph.PowerOp, 2, call.tensor(x, call.element))


@operator("deg2rad")
def degrees(call: Call, x: ir.Value) -> ir.Value:
    """Angles in radians."""
    return multiply(call.tensor(x, call.element), math.pi / 180)


@operator("nan_to_num")
def nan_to_num(
    call: Call, x: ir.Value, nan: Any = None, posinf: Any = None, neginf: Any = None
) -> ir.Value:
    """Elements that are finite."""
    element = element_of(x)
    if is_integer(element):
        return x
    most = {"f16": 65504.0, "bf16": 3.3895313892515355e38, "f32": 3.4028234663852886e38}
    largest = most.get(str(element), 1.7976931348623157e308)
    result = choose(emit(graph.IsnanOp, x), scalar(nan or 0.0, element), x)
    high = binary(graph.EqualOp, x, math.inf)
    low = binary(graph.EqualOp, x, -math.inf)
    result = choose(high, scalar(largest if posinf is None else posinf, element), result)
    return choose(low, scalar(-largest if neginf is None else neginf, element), result)


@operator("_to_copy", "to.dtype", "to.dtype_layout", "prims::convert_element_type")
def to_copy(call: Call, x: ir.Value, *args: Any, **options: Any) -> ir.Value:
    """Elements of another type."""
    return call.tensor(x, call.element)


@operator(
    *("clone", "alias", "contiguous", "detach", "lift_fresh_copy", "dropout", "detach_"),
    *("positive", "resolve_conj", "resolve_neg", "feature_dropout", "alpha_dropout"),
    pairs=unchanged,
)
def identity(call: Call, x: ir.Value, *args: Any, **options: Any) -> ir.Value:
    """The operand."""
    return x
