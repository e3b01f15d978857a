"""Gradients of softmax and of normalisations. Half precision is computed in f32."""

from relax_mlir.bindings import ir
from relax_mlir.decompositions.emit import (
    add,
    emit,
    multiply,
    rank_of,
    reduce,
    subtract,
    widen,
)
from relax_mlir.dialects import graph
from relax_mlir.gradients.reverse import Adjoint, Contributions


def softmax(op: graph.SoftmaxOp, adjoint: Adjoint) -> Contributions:
    """y * (g - sum(g * y))."""
    axis, seed = op.attributes["axis"].value, widen(adjoint.seed)
    y = emit(graph.SoftmaxOp, widen(op.input), axis=axis)
    total = reduce(graph.SumOp, multiply(seed, y), [axis], keepdims=True)
    yield op.input, multiply(y, subtract(seed, total))


def log_softmax(op: graph.LogSoftmaxOp, adjoint: Adjoint) -> Contributions:
    """g - softmax(x) * sum(g)."""
    axis, seed = op.attributes["axis"].value, widen(adjoint.seed)
    y = emit(graph.SoftmaxOp, widen(op.input), axis=axis)
    total = reduce(graph.SumOp, seed, [axis], keepdims=True)
    yield op.input, subtract(seed, multiply(y, total))


def layer_norm(op: graph.LayerNormOp, adjoint: Adjoint) -> Contributions:
    """With n the normalised x and h = g * weight: (h - mean(h) - n * mean(h * n)) / deviation."""
    x, seed = widen(op.input), widen(adjoint.seed)
    mean = _mean(x)
    variance = emit(graph.VarianceOp, x, axes=[rank_of(x) - 1], keepdims=True, correction=0)
    inverse = emit(graph.RsqrtOp, add(variance, op.attributes["epsilon"].value))
    normalized = multiply(subtract(x, mean), inverse)
    if adjoint.wants(op.input):
        own = multiply(seed, widen(op.weight))
        along = multiply(normalized, _mean(multiply(own, normalized)))
        yield op.input, multiply(subtract(subtract(own, _mean(own)), along), inverse)
    if adjoint.wants(op.weight):
        yield op.weight, multiply(seed, normalized)
    yield op.bias, seed


def rms_norm(op: graph.RmsNormOp, adjoint: Adjoint) -> Contributions:
    """With n the normalised x and h = g * weight: (h - n * mean(h * n)) / root mean square."""
    x, seed = widen(op.input), widen(adjoint.seed)
    square = _mean(emit(graph.SquareOp, x))
    inverse = emit(graph.RsqrtOp, add(square, op.attributes["epsilon"].value))
    normalized = multiply(x, inverse)
    if adjoint.wants(op.input):
        own = multiply(seed, widen(op.weight))
        along = multiply(normalized, _mean(multiply(own, normalized)))
        yield op.input, multiply(subtract(own, along), inverse)
    if adjoint.wants(op.weight):
        yield op.weight, multiply(seed, normalized)


def _mean(x: ir.Value) -> ir.Value:
    """The mean along the last axis, which stays."""
    return reduce(graph.MeanOp, x, [rank_of(x) - 1], keepdims=True)
