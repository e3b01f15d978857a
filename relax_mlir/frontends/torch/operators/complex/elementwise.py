"""Arithmetic, functions and comparisons of complex elements."""

from collections.abc import Callable
from functools import partial
from typing import Any

from relax_mlir.bindings import ir
from relax_mlir.decompositions.emit import emit, multiply
from relax_mlir.decompositions.emit import where as choose
from relax_mlir.dialects import graph

from ....complex import Pair, arithmetic, functions, inverses
from ....complex.arithmetic import is_true, product
from ...call import Call
from ...registry import of_pairs

UNARY: dict[str, Callable[[Pair], Any]] = {
    "_conj": arithmetic.conjugate,
    "_conj_physical": arithmetic.conjugate,
    "_neg_view": arithmetic.negative,
    "abs": arithmetic.absolute,
    "acos": inverses.arc_cosine,
    "acosh": inverses.area_cosine,
    "angle": arithmetic.angle,
    "asin": inverses.arc_sine,
    "asinh": inverses.area_sine,
    "atan": inverses.arc_tangent,
    "atanh": inverses.area_tangent,
    "conj": arithmetic.conjugate,
    "conj_physical": arithmetic.conjugate,
    "cos": functions.cosine,
    "cosh": functions.hyperbolic_cosine,
    "exp": functions.exponential,
    "exp2": partial(functions.power_of, 2),
    "expm1": functions.exponential_minus_one,
    "isfinite": arithmetic.is_finite,
    "isinf": partial(arithmetic.either, predicate=partial(emit, graph.IsinfOp)),
    "isnan": partial(arithmetic.either, predicate=partial(emit, graph.IsnanOp)),
    "log": functions.logarithm,
    "log10": partial(functions.logarithm_of_base, 10),
    "log1p": functions.log_plus_one,
    "log2": partial(functions.logarithm_of_base, 2),
    "neg": arithmetic.negative,
    "reciprocal": functions.reciprocal,
    "rsqrt": functions.reciprocal_root,
    "sgn": arithmetic.sign,
    "sigmoid": functions.logistic,
    "silu": lambda x: product(x, functions.logistic(x)),
    "sin": functions.sine,
    "sinh": functions.hyperbolic_sine,
    "sqrt": functions.square_root,
    "square": functions.square,
    "tan": functions.tangent,
    "tanh": functions.hyperbolic_tangent,
}


def _unary(function: Callable[[Pair], Any]) -> Callable[..., Any]:
    return lambda call, x: function(x)


for _name, _function in UNARY.items():
    of_pairs(_name)(_unary(_function))


def _scaled(call: Call, x: Pair, factor: Any) -> Pair:
    return x if factor == 1 else product(x, call.pair(factor))


@of_pairs("add.Tensor", "add.Scalar")
def add(call: Call, a: Any, b: Any, alpha: Any = 1) -> Pair:
    """a + alpha * b."""
    return arithmetic.add(call.pair(a), _scaled(call, call.pair(b), alpha))


@of_pairs("sub.Tensor", "sub.Scalar")
def sub(call: Call, a: Any, b: Any, alpha: Any = 1) -> Pair:
    """a - alpha * b."""
    return arithmetic.subtract(call.pair(a), _scaled(call, call.pair(b), alpha))


@of_pairs("rsub.Tensor", "rsub.Scalar")
def rsub(call: Call, a: Any, b: Any, alpha: Any = 1) -> Pair:
    """b - alpha * a."""
    return sub(call, b, a, alpha)


@of_pairs("mul.Tensor", "mul.Scalar")
def mul(call: Call, a: Any, b: Any) -> Pair:
    """The product."""
    return product(call.pair(a), call.pair(b))


@of_pairs("div.Tensor", "div.Scalar", "true_divide.Tensor")
def div(call: Call, a: Any, b: Any) -> Pair:
    """The quotient."""
    return arithmetic.quotient(call.pair(a), call.pair(b))


@of_pairs("ldexp.Tensor")
def ldexp(call: Call, x: Any, exponent: Any) -> Pair:
    """x times a power of 2."""
    return product(call.pair(x), functions.power_of(2, call.pair(exponent)))


POWERS: dict[Any, Callable[[Pair], Pair]] = {
    -2: lambda x: functions.reciprocal(functions.square(x)),
    -1: functions.reciprocal,
    -0.5: functions.reciprocal_root,
    0: functions.ones_like,
    0.5: functions.square_root,
    1: lambda x: x,
    2: functions.square,
    3: lambda x: product(functions.square(x), x),
}


@of_pairs("pow.Tensor_Scalar")
def power_scalar(call: Call, x: Any, exponent: Any) -> Pair:
    """A power, by products or roots where the exponent is that of one."""
    own = None if isinstance(exponent, ir.Value) else POWERS.get(exponent)
    return power(call, x, exponent) if own is None else own(call.pair(x))


@of_pairs("pow.Tensor_Tensor", "pow.Scalar")
def power(call: Call, a: Any, b: Any) -> Pair:
    """A power; of 0 it is 0, infinite or NaN, as the real part of the exponent is."""
    x, y = call.pair(a), call.pair(b)
    usual = functions.exponential(product(y, functions.logarithm(x)))
    zero = emit(graph.LogicalNotOp, is_true(x))
    limit = emit(graph.ExpOp, multiply(emit(graph.LogOp, x.real), y.real))
    real = choose(zero, limit, usual.real)
    return Pair(real, choose(zero, multiply(limit, 0), usual.imaginary))


@of_pairs("eq.Tensor", "eq.Scalar")
def eq(call: Call, a: Any, b: Any) -> ir.Value:
    """Whether both parts are equal."""
    return arithmetic.is_equal(*call.common_pairs(a, b))


@of_pairs("ne.Tensor", "ne.Scalar")
def ne(call: Call, a: Any, b: Any) -> ir.Value:
    """Whether a part differs."""
    return emit(graph.LogicalNotOp, eq(call, a, b))


@of_pairs("lerp.Tensor", "lerp.Scalar")
def lerp(call: Call, a: Pair, b: Pair, weight: Any) -> Pair:
    """a + weight * (b - a)."""
    return arithmetic.add(a, product(call.pair(weight), arithmetic.subtract(b, a)))


@of_pairs("addcmul")
def addcmul(call: Call, x: Any, a: Any, b: Any, value: Any = 1) -> Pair:
    """x + value * a * b."""
    return arithmetic.add(call.pair(x), _scaled(call, mul(call, a, b), value))


@of_pairs("addcdiv")
def addcdiv(call: Call, x: Any, a: Any, b: Any, value: Any = 1) -> Pair:
    """x + value * a / b."""
    return arithmetic.add(call.pair(x), _scaled(call, div(call, a, b), value))
