"""Elementary functions of complex elements, by their real and imaginary parts."""

import math

from relax_mlir.bindings import ir
from relax_mlir.decompositions.emit import (
    add,
    astype,
    binary,
    broadcast_to,
    dims_of,
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

from .arithmetic import (
    absolute,
    angle,
    is_zero,
    negated,
    negative,
    polar,
    product,
    quotient,
    rotated,
    size_of,
)
from .pair import Pair, of_real


def ones_like(x: Pair) -> Pair:
    """1 for each element."""
    return of_real(broadcast_to(scalar(1, element_of(x.real)), dims_of(x.real)))


def reciprocal(x: Pair) -> Pair:
    """1 divided by an element."""
    return quotient(Pair(*(scalar(i, element_of(x.real)) for i in (1, 0))), x)


def square(x: Pair) -> Pair:
    """The product of an element with itself."""
    return product(x, x)


def exponential(x: Pair) -> Pair:
    """e to the power; real elements stay real."""
    result = polar(emit(graph.ExpOp, x.real), x.imaginary)
    return Pair(result.real, where(is_zero(x.imaginary), x.imaginary, result.imaginary))


def power_of(base: float, x: Pair) -> Pair:
    """A power of a base that is positive."""
    return exponential(x.map(lambda part: multiply(part, math.log(base))))


def exponential_minus_one(x: Pair) -> Pair:
    """e to the power, less 1, exact near 0."""
    a, b = x.parts
    half = emit(graph.SinOp, multiply(b, 0.5))
    loss = multiply(emit(graph.ExpOp, a), multiply(multiply(half, half), 2))
    sine = multiply(emit(graph.ExpOp, a), emit(graph.SinOp, b))
    return Pair(subtract(emit(graph.Expm1Op, a), loss), where(is_zero(b), b, sine))


def logarithm(x: Pair) -> Pair:
    """The natural logarithm, exact where the distance from 0 is near 1."""
    a, b = x.parts
    large, small = maximum(size_of(a), size_of(b)), minimum(size_of(a), size_of(b))
    usual = emit(graph.LogOp, absolute(x))
    rest = add(multiply(subtract(large, 1), add(large, 1)), multiply(small, small))
    near = multiply(emit(graph.Log1pOp, rest), 0.5)
    is_near = emit(graph.LogicalAndOp, greater(large, 0.5), less(large, 2))
    is_near = emit(graph.LogicalAndOp, is_near, less(small, 2))
    return Pair(where(is_near, near, usual), angle(x))


def logarithm_of_base(base: int, x: Pair) -> Pair:
    """The logarithm to a base."""
    return logarithm(x).map(lambda part: multiply(part, 1 / math.log(base)))


def log_plus_one(x: Pair) -> Pair:
    """The natural logarithm of 1 plus, exact near 0."""
    element = element_of(x.real)
    a, b = (astype(part, ir.F64Type.get()) for part in x.parts)
    near = add(multiply(a, add(a, 2)), multiply(b, b))
    own = multiply(emit(graph.Log1pOp, near), 0.5)
    far = logarithm(Pair(add(a, 1), b))
    real = where(less(maximum(size_of(a), size_of(b)), 0.5), own, far.real)
    return Pair(astype(real, element), astype(far.imaginary, element))


def square_root(x: Pair) -> Pair:
    """The root in the right half of the plane."""
    a, b = x.parts
    size = absolute(x)
    half = multiply(emit(graph.SqrtOp, add(multiply(size, 0.5), multiply(size_of(a), 0.5))), 1)
    other = divide(multiply(b, 0.5), where(is_zero(half), scalar(1, element_of(half)), half))
    right = binary(graph.GreaterEqualOp, a, 0)
    real = where(right, half, size_of(other))
    imaginary = where(right, other, emit(graph.CopysignOp, half, b))
    infinite = emit(graph.IsinfOp, b)
    return Pair(where(infinite, size_of(b), real), where(infinite, b, imaginary))


def reciprocal_root(x: Pair) -> Pair:
    """1 divided by the square root."""
    return reciprocal(square_root(x))


def sine(x: Pair) -> Pair:
    """The sine of radians."""
    sin, cos, sinh, cosh = _circular(x)
    return Pair(multiply(sin, cosh), multiply(cos, sinh))


def cosine(x: Pair) -> Pair:
    """The cosine of radians."""
    sin, cos, sinh, cosh = _circular(x)
    return Pair(multiply(cos, cosh), negated(multiply(sin, sinh)))


def _circular(x: Pair) -> list[ir.Value]:
    """Sine and cosine of the real part, the hyperbolic ones of the imaginary part."""
    own = [emit(op, x.real) for op in (graph.SinOp, graph.CosOp)]
    return own + [emit(op, x.imaginary) for op in (graph.SinhOp, graph.CoshOp)]


def hyperbolic_sine(x: Pair) -> Pair:
    """The hyperbolic sine: that of i x, divided by i."""
    return _unrotated(sine(rotated(x)))


def hyperbolic_cosine(x: Pair) -> Pair:
    """The hyperbolic cosine: the cosine of i x."""
    return cosine(rotated(x))


def _unrotated(x: Pair) -> Pair:
    """The quotient by the imaginary unit."""
    return Pair(x.imaginary, negated(x.real))


def hyperbolic_tangent(x: Pair) -> Pair:
    """The hyperbolic tangent: with t = tan b, (tanh a (1 + t^2) + i t / cosh(a)^2) / ..."""
    a, b = x.parts
    sin, cos = emit(graph.SinOp, b), emit(graph.CosOp, b)
    near = minimum(maximum(a, -20), 20)  # where it is 1 to the last bit beyond
    sinh, cosh = emit(graph.SinhOp, near), emit(graph.CoshOp, near)
    size = add(multiply(sinh, sinh), multiply(cos, cos))
    real = divide(multiply(sinh, cosh), size)
    imaginary = divide(multiply(sin, cos), size)
    is_far = greater(size_of(a), 20)
    one = emit(graph.CopysignOp, scalar(1, element_of(a)), a)
    decay = multiply(emit(graph.ExpOp, multiply(size_of(a), -2)), 4)
    return Pair(
        where(is_far, one, real), where(is_far, multiply(multiply(sin, cos), decay), imaginary)
    )


def tangent(x: Pair) -> Pair:
    """The tangent of radians: the hyperbolic one of i x, divided by i."""
    return _unrotated(hyperbolic_tangent(rotated(x)))


def logistic(x: Pair) -> Pair:
    """1 / (1 + exp(-x))."""
    size = exponential(negative(x))
    return reciprocal(Pair(add(size.real, 1), size.imaginary))


def power(x: Pair, y: Pair) -> Pair:
    """A power; of 0 it is 0, but 1 for an exponent of 0."""
    usual = exponential(product(y, logarithm(x)))
    zero = emit(graph.LogicalAndOp, *map(is_zero, x.parts))
    none = emit(graph.LogicalAndOp, *map(is_zero, y.parts))
    one = scalar(1, element_of(usual.real))
    real = where(none, one, where(zero, 0, usual.real))
    either = emit(graph.LogicalOrOp, zero, none)
    return Pair(real, where(either, 0, usual.imaginary))
