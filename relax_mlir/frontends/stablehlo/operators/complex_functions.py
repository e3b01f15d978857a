"""Elementary functions of complex elements, by their real and imaginary parts."""

from relax_mlir.bindings import ir
from relax_mlir.decompositions.emit import (
    add,
    astype,
    binary,
    divide,
    element_of,
    emit,
    greater,
    less,
    maximum,
    minimum,
    multiply,
    scalar,
    subtract,
    where,
)
from relax_mlir.dialects import graph

from ..node import Node
from ..registry import Pair, Value, operator


def product(x: Pair, y: Pair) -> Pair:
    """The product."""
    real = subtract(multiply(x.real, y.real), multiply(x.imaginary, y.imaginary))
    return Pair(real, add(multiply(x.real, y.imaginary), multiply(x.imaginary, y.real)))


def quotient(x: Pair, y: Pair) -> Pair:
    """The quotient, by Smith's method: the greater part of the divisor is divided by."""
    (a, b), (c, d) = x.parts, y.parts
    is_real = binary(graph.GreaterEqualOp, _abs(c), _abs(d))
    great, small = where(is_real, c, d), where(is_real, d, c)
    ratio = divide(small, great)
    size = add(great, multiply(small, ratio))
    p, q = where(is_real, a, b), where(is_real, b, a)
    real = divide(add(p, multiply(q, ratio)), size)
    turn = divide(subtract(q, multiply(p, ratio)), size)
    imaginary = where(is_real, turn, emit(graph.NegativeOp, turn))
    zero = emit(graph.LogicalAndOp, _is_zero(c), _is_zero(d))
    by_zero = (divide(each, _abs(c)) for each in (a, b))
    return Pair(*(where(zero, z, own) for z, own in zip(by_zero, (real, imaginary))))


def _abs(x: ir.Value) -> ir.Value:
    return emit(graph.AbsOp, x)


def _is_zero(x: ir.Value) -> ir.Value:
    return binary(graph.EqualOp, x, 0)


@operator("complex.divide", elementwise=True)
def divide_(node: Node) -> Value:
    """The quotient."""
    return quotient(node.pair(0), node.pair(1))


def exponential(x: Pair) -> Pair:
    """e to the power; real elements stay real."""
    size = emit(graph.ExpOp, x.real)
    parts = [multiply(size, emit(op, x.imaginary)) for op in (graph.CosOp, graph.SinOp)]
    return Pair(parts[0], where(_is_zero(x.imaginary), x.imaginary, parts[1]))


@operator("complex.exponential", elementwise=True)
def exponential_(node: Node) -> Value:
    """e to the power."""
    return exponential(node.pair(0))


@operator("complex.exponential_minus_one", elementwise=True)
def exponential_minus_one(node: Node) -> Value:
    """e to the power, less 1, exact near 0."""
    a, b = node.pair(0).parts
    half = emit(graph.SinOp, multiply(b, 0.5))
    loss = multiply(emit(graph.ExpOp, a), multiply(multiply(half, half), 2))
    sine = multiply(emit(graph.ExpOp, a), emit(graph.SinOp, b))
    return Pair(subtract(emit(graph.Expm1Op, a), loss), where(_is_zero(b), b, sine))


def logarithm(x: Pair) -> Pair:
    """The natural logarithm, exact where the distance from 0 is near 1."""
    a, b = x.parts
    large, small = maximum(_abs(a), _abs(b)), minimum(_abs(a), _abs(b))
    usual = emit(graph.LogOp, emit(graph.HypotOp, a, b))
    rest = add(multiply(subtract(large, 1), add(large, 1)), multiply(small, small))
    near = multiply(emit(graph.Log1pOp, rest), 0.5)
    is_near = emit(graph.LogicalAndOp, greater(large, 0.5), less(large, 2))
    is_near = emit(graph.LogicalAndOp, is_near, less(small, 2))
    return Pair(where(is_near, near, usual), emit(graph.Atan2Op, b, a))


@operator("complex.log", elementwise=True)
def log(node: Node) -> Value:
    """The natural logarithm."""
    return logarithm(node.pair(0))


@operator("complex.log_plus_one", elementwise=True)
def log_plus_one(node: Node) -> Value:
    """The natural logarithm of 1 plus, exact near 0."""
    element = element_of(node.pair(0).real)
    a, b = (astype(part, ir.F64Type.get()) for part in node.pair(0).parts)
    near = add(multiply(a, add(a, 2)), multiply(b, b))
    own = multiply(emit(graph.Log1pOp, near), 0.5)
    far = logarithm(Pair(add(a, 1), b))
    real = where(less(maximum(_abs(a), _abs(b)), 0.5), own, far.real)
    return Pair(astype(real, element), astype(far.imaginary, element))


def square_root(x: Pair) -> Pair:
    """The root in the right half of the plane."""
    a, b = x.parts
    size = emit(graph.HypotOp, a, b)
    half = multiply(emit(graph.SqrtOp, add(multiply(size, 0.5), multiply(_abs(a), 0.5))), 1)
    other = divide(multiply(b, 0.5), where(_is_zero(half), scalar(1, element_of(half)), half))
    right = binary(graph.GreaterEqualOp, a, 0)
    real = where(right, half, _abs(other))
    imaginary = where(right, other, emit(graph.CopysignOp, half, b))
    infinite = emit(graph.IsinfOp, b)
    return Pair(where(infinite, _abs(b), real), where(infinite, b, imaginary))


@operator("complex.sqrt", elementwise=True)
def sqrt(node: Node) -> Value:
    """The square root."""
    return square_root(node.pair(0))


@operator("complex.rsqrt", elementwise=True)
def rsqrt(node: Node) -> Value:
    """1 divided by the square root."""
    root = square_root(node.pair(0))
    one = scalar(1, element_of(root.real))
    return quotient(Pair(one, scalar(0, element_of(root.real))), root)


@operator("complex.sign", elementwise=True)
def sign(node: Node) -> Value:
    """The direction: the element divided by its distance from 0; 0 of 0."""
    a, b = node.pair(0).parts
    size = emit(graph.HypotOp, a, b)
    zero = _is_zero(size)
    return Pair(*(where(zero, each, divide(each, size)) for each in (a, b)))


@operator("complex.sine", "complex.cosine", elementwise=True)
def sine(node: Node) -> Value:
    """The sine or the cosine of radians."""
    a, b = node.pair(0).parts
    sin, cos = emit(graph.SinOp, a), emit(graph.CosOp, a)
    sinh, cosh = emit(graph.SinhOp, b), emit(graph.CoshOp, b)
    if node.name == "sine":
        return Pair(multiply(sin, cosh), multiply(cos, sinh))
    return Pair(multiply(cos, cosh), emit(graph.NegativeOp, multiply(sin, sinh)))


def hyperbolic_tangent(x: Pair) -> Pair:
    """The hyperbolic tangent: with t = tan b, (tanh a (1 + t^2) + i t / cosh(a)^2) / ..."""
    a, b = x.parts
    sin, cos = emit(graph.SinOp, b), emit(graph.CosOp, b)
    near = minimum(maximum(a, -20), 20)  # where it is 1 to the last bit beyond
    sinh, cosh = emit(graph.SinhOp, near), emit(graph.CoshOp, near)
    size = add(multiply(sinh, sinh), multiply(cos, cos))
    real = divide(multiply(sinh, cosh), size)
    imaginary = divide(multiply(sin, cos), size)
    is_far = greater(_abs(a), 20)
    one = emit(graph.CopysignOp, scalar(1, element_of(a)), a)
    decay = multiply(emit(graph.ExpOp, multiply(_abs(a), -2)), 4)
    return Pair(
        where(is_far, one, real), where(is_far, multiply(multiply(sin, cos), decay), imaginary)
    )


@operator("complex.tanh", elementwise=True)
def tanh(node: Node) -> Value:
    """The hyperbolic tangent."""
    return hyperbolic_tangent(node.pair(0))


@operator("complex.tan", elementwise=True)
def tan(node: Node) -> Value:
    """The tangent of radians."""
    x = node.pair(0)
    rotated = hyperbolic_tangent(Pair(emit(graph.NegativeOp, x.imaginary), x.real))
    return Pair(rotated.imaginary, emit(graph.NegativeOp, rotated.real))


@operator("complex.logistic", elementwise=True)
def logistic(node: Node) -> Value:
    """1 / (1 + exp(-x))."""
    x = node.pair(0)
    size = exponential(Pair(*(emit(graph.NegativeOp, part) for part in x.parts)))
    one, zero = (scalar(i, element_of(size.real)) for i in (1, 0))
    return quotient(Pair(one, zero), Pair(add(size.real, 1), size.imaginary))


@operator("complex.power", elementwise=True)
def power(node: Node) -> Value:
    """A power; of 0 it is 0, but 1 for an exponent of 0."""
    x, y = node.pair(0), node.pair(1)
    usual = exponential(product(y, logarithm(x)))
    zero = emit(graph.LogicalAndOp, *map(_is_zero, x.parts))
    none = emit(graph.LogicalAndOp, *map(_is_zero, y.parts))
    one = scalar(1, element_of(usual.real))
    real = where(none, one, where(zero, 0, usual.real))
    either = emit(graph.LogicalOrOp, zero, none)
    return Pair(real, where(either, 0, usual.imaginary))
