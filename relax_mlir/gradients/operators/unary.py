"""Gradients of element-wise operators of one tensor.

Where a function has no derivative, it is 0, as of |x| at 0. Half precision is computed in f32.
"""

from collections.abc import Callable
from functools import reduce
from math import log, pi, sqrt
from operator import or_
from typing import TYPE_CHECKING, TypeAlias

from relax_mlir.bindings import ir
from relax_mlir.decompositions.emit import (
    add,
    binary,
    divide,
    emit,
    greater,
    maximum,
    minimum,
    multiply,
    subtract,
    where,
    widen,
)
from relax_mlir.dialects import graph
from relax_mlir.gradients.reverse import Adjoint, Contributions

Pullback: TypeAlias = Callable[[ir.Value, ir.Value, ir.Value], ir.Value]
"""From the result's gradient, the element x and the result y to the gradient of x."""


def _negative(x: ir.Value) -> ir.Value:
    return emit(graph.NegativeOp, x)


def _square(x: ir.Value) -> ir.Value:
    return emit(graph.SquareOp, x)


def _exp(x: ir.Value) -> ir.Value:
    return emit(graph.ExpOp, x)


def _sigmoid(x: ir.Value) -> ir.Value:
    return emit(graph.SigmoidOp, x)


def _rsqrt(x: ir.Value) -> ir.Value:
    return emit(graph.RsqrtOp, x)


def _one_less_square(x: ir.Value) -> ir.Value:
    """1 - x^2, exact near 1."""
    return multiply(subtract(1, x), add(x, 1))


def _silu(g: ir.Value, x: ir.Value, y: ir.Value) -> ir.Value:
    slope = add(multiply(x, _sigmoid(_negative(x))), 1)
    return multiply(g, multiply(_sigmoid(x), slope))


def _gelu(g: ir.Value, x: ir.Value, y: ir.Value) -> ir.Value:
    """The normal distribution at x, plus x times its density."""
    distribution = multiply(add(emit(graph.ErfOp, multiply(x, sqrt(0.5))), 1), 0.5)
    density = multiply(_exp(multiply(_square(x), -0.5)), 1 / sqrt(2 * pi))
    return multiply(g, add(distribution, multiply(x, density)))


def _gelu_tanh(g: ir.Value, x: ir.Value, y: ir.Value) -> ir.Value:
    """With s = sigmoid(2 k (x + c x^3)): s + x s (1 - s) 2 k (1 + 3 c x^2); constant from 30 on."""
    near = minimum(maximum(x, -30), 30)
    square = _square(near)
    twice = 2 * sqrt(2 / pi)
    inner = multiply(near, multiply(add(multiply(square, 0.044715), 1), twice))
    high, low = _sigmoid(inner), _sigmoid(_negative(inner))
    slope = multiply(add(multiply(square, 3 * 0.044715), 1), twice)
    return multiply(g, add(high, multiply(multiply(near, slope), multiply(high, low))))


PULLBACKS: dict[type[graph.UnaryOp], Pullback] = {
    graph.AbsOp: lambda g, x, y: multiply(g, emit(graph.SignOp, x)),
    graph.AcosOp: lambda g, x, y: _negative(multiply(g, _rsqrt(_one_less_square(x)))),
    graph.AcoshOp: lambda g, x, y: multiply(g, _rsqrt(multiply(subtract(x, 1), add(x, 1)))),
    graph.AsinOp: lambda g, x, y: multiply(g, _rsqrt(_one_less_square(x))),
    graph.AsinhOp: lambda g, x, y: divide(g, binary(graph.HypotOp, x, 1)),
    graph.AtanOp: lambda g, x, y: divide(g, add(_square(x), 1)),
    graph.AtanhOp: lambda g, x, y: divide(g, _one_less_square(x)),
    graph.CosOp: lambda g, x, y: _negative(multiply(g, emit(graph.SinOp, x))),
    graph.CoshOp: lambda g, x, y: multiply(g, emit(graph.SinhOp, x)),
    graph.ErfOp: lambda g, x, y: multiply(g, multiply(_exp(_negative(_square(x))), 2 / sqrt(pi))),
    graph.ExpOp: lambda g, x, y: multiply(g, y),
    graph.Expm1Op: lambda g, x, y: multiply(g, _exp(x)),
    graph.GeluOp: _gelu,
    graph.GeluTanhOp: _gelu_tanh,
    graph.LogOp: lambda g, x, y: divide(g, x),
    graph.Log10Op: lambda g, x, y: divide(g, multiply(x, log(10))),
    graph.Log1pOp: lambda g, x, y: divide(g, add(x, 1)),
    graph.Log2Op: lambda g, x, y: divide(g, multiply(x, log(2))),
    graph.NegativeOp: lambda g, x, y: _negative(g),
    graph.ReciprocalOp: lambda g, x, y: _negative(multiply(g, _square(y))),
    graph.ReluOp: lambda g, x, y: where(greater(x, 0), g, 0),
    graph.RsqrtOp: lambda g, x, y: multiply(g, multiply(multiply(y, -0.5), _square(y))),
    graph.SigmoidOp: lambda g, x, y: multiply(g, multiply(y, _sigmoid(_negative(x)))),
    graph.SiluOp: _silu,
    graph.SinOp: lambda g, x, y: multiply(g, emit(graph.CosOp, x)),
    graph.SinhOp: lambda g, x, y: multiply(g, emit(graph.CoshOp, x)),
    graph.SqrtOp: lambda g, x, y: divide(multiply(g, 0.5), y),
    graph.SquareOp: lambda g, x, y: multiply(g, multiply(x, 2)),
    graph.TanOp: lambda g, x, y: multiply(g, add(_square(y), 1)),
    graph.TanhOp: lambda g, x, y: multiply(g, _one_less_square(y)),
}


if TYPE_CHECKING:
    Differentiable = graph.UnaryOp
    Constant = graph.UnaryOp
else:
    Differentiable = reduce(or_, PULLBACKS)
    Constant = graph.CeilOp | graph.FloorOp | graph.RoundOp | graph.SignOp | graph.TruncOp


def unary(op: Differentiable, adjoint: Adjoint) -> Contributions:
    """The gradient of the result times the derivative."""
    x = widen(op.input)
    y = op.result if x == op.input else emit(type(op), x)
    yield op.input, PULLBACKS[type(op)](widen(adjoint.seed), x, y)


def steps(op: Constant, adjoint: Adjoint) -> Contributions:
    """Zero: between its steps a step function is constant."""
    yield from ()
