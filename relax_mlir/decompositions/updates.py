"""Steps of training as operators of ONNX: what becomes of a parameter and of its state.

    x, gradient, state : tensors of the same dims    rate, step : tensors of one element

`norm` is a factor of x that is added to the gradient. Half precision is computed in f32.
"""

from collections.abc import Sequence

from relax_mlir.bindings import ir
from relax_mlir.dialects import graph
from relax_mlir.dialects.graph import ShapeError, dims_differ
from relax_mlir.symbolic import const, product

from .emit import (
    add,
    astype,
    dims_of,
    dims_text,
    divide,
    element_of,
    emit,
    greater,
    is_integer,
    multiply,
    rank_of,
    reshape,
    scalar,
    subtract,
    where,
    widen,
)


def momentum(
    rate: ir.Value,
    step: ir.Value,
    x: ir.Value,
    gradient: ir.Value,
    velocity: ir.Value,
    *,
    alpha: float,
    beta: float,
    norm: float = 0.0,
    nesterov: bool = False,
) -> tuple[ir.Value, ir.Value]:
    """x - rate * v of v = alpha * velocity + beta * gradient, and v; in step 0 beta is 1.

    With `nesterov` it is rate * (gradient + alpha * v). Source: ONNX `Momentum`.
    """
    _check(x, gradient, velocity)
    own, slope = _regular(x, gradient, norm)
    rate, is_later = _one(rate, own), greater(_one(step, own), 0)
    factor = where(is_later, scalar(beta, element_of(own)), 1)
    new = add(multiply(widen(velocity), alpha), multiply(factor, slope))
    by = add(slope, multiply(new, alpha)) if nesterov else new
    return _as(x, subtract(own, multiply(rate, by))), _as(velocity, new)


def adagrad(
    rate: ir.Value,
    step: ir.Value,
    x: ir.Value,
    gradient: ir.Value,
    squares: ir.Value,
    *,
    decay: float = 0.0,
    epsilon: float = 1e-6,
    norm: float = 0.0,
) -> tuple[ir.Value, ir.Value]:
    """x - r * gradient / (sqrt(h) + epsilon), and h, the sum of squares up to this one.

    r is rate / (1 + step * decay). Source: ONNX `Adagrad`.
    """
    _check(x, gradient, squares)
    own, slope = _regular(x, gradient, norm)
    rate = divide(_one(rate, own), add(multiply(_one(step, own), decay), 1))
    new = add(widen(squares), multiply(slope, slope))
    by = divide(multiply(rate, slope), add(emit(graph.SqrtOp, new), epsilon))
    return _as(x, subtract(own, by)), _as(squares, new)


def adam(
    rate: ir.Value,
    step: ir.Value,
    x: ir.Value,
    gradient: ir.Value,
    mean: ir.Value,
    squares: ir.Value,
    *,
    alpha: float = 0.9,
    beta: float = 0.999,
    epsilon: float = 1e-6,
    norm: float = 0.0,
    norm_after: float = 0.0,
) -> tuple[ir.Value, ir.Value, ir.Value]:
    """x, less r * v / (sqrt(h) + epsilon), and v and h: running means of gradients and of squares.

    After step 0 r is rate * sqrt(1 - beta^step) / (1 - alpha^step). Source: arXiv 1412.6980; ONNX
    `Adam`.
    """
    _check(x, gradient, mean, squares)
    own, slope = _regular(x, gradient, norm)
    first = add(multiply(widen(mean), alpha), multiply(slope, 1 - alpha))
    second = add(multiply(widen(squares), beta), multiply(multiply(slope, slope), 1 - beta))
    rate, count = _one(rate, own), _one(step, own)
    is_later = greater(count, 0)
    count = where(is_later, count, 1)  # at 0 the roots below have no slope
    rests = [
        subtract(1, emit(graph.PowerOp, scalar(base, element_of(own)), count))
        for base in (beta, alpha)
    ]
    later = divide(multiply(rate, emit(graph.SqrtOp, rests[0])), rests[1])
    rate = where(is_later, later, rate)
    by = divide(multiply(rate, first), add(emit(graph.SqrtOp, second), epsilon))
    new = multiply(subtract(own, by), 1 - norm_after)
    return _as(x, new), _as(mean, first), _as(squares, second)


def _check(x: ir.Value, *others: ir.Value) -> None:
    """Raises ShapeError unless all are floats of the same dims."""
    for other in others:
        if is_integer(element_of(x)) or element_of(other) != element_of(x):
            raise ShapeError(f"expects floats of {element_of(x)}, but got {element_of(other)}")
        if rank_of(other) != rank_of(x) or any(map(dims_differ, dims_of(x), dims_of(other))):
            dims = f"{dims_text(dims_of(x))}, but got {dims_text(dims_of(other))}"
            raise ShapeError(f"expects state of dims {dims}")


def _one(value: ir.Value, like: ir.Value) -> ir.Value:
    """A tensor of one element as one of rank 0 of the type that is computed in."""
    if product(dims_of(value)) != const(1):
        raise ShapeError(f"expects one element, but got dims {dims_text(dims_of(value))}")
    return astype(reshape(value, []), element_of(like))


def _regular(x: ir.Value, gradient: ir.Value, norm: float) -> Sequence[ir.Value]:
    """x and the gradient, to which a part of x is added."""
    own, slope = widen(x), widen(gradient)
    return own, add(slope, multiply(own, norm)) if norm else slope


def _as(like: ir.Value, value: ir.Value) -> ir.Value:
    return astype(value, element_of(like))
