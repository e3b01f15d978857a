"""Normalisation by the statistics of each feature."""

from relax_mlir import decompositions as d
from relax_mlir.bindings import ir
from relax_mlir.decompositions.emit import (
    add,
    dims_of,
    divide,
    element_of,
    emit,
    multiply,
    per_channel,
    rank_of,
    reshape,
    subtract,
    symbol,
)
from relax_mlir.dialects import graph
from relax_mlir.symbolic import product

from ..node import Node
from ..registry import operator


@operator("batch_norm_inference")
def batch_norm_inference(node: Node) -> ir.Value:
    """Elements less the mean of their feature, by its deviation, scaled and shifted."""
    x, scale, offset, mean, variance = node.tensors()
    epsilon = ir.FloatAttr(node.attribute("epsilon")).value
    axis = node.integer("feature_index")
    return d.batch_norm(x, scale, offset, mean, variance, epsilon=epsilon, axis=axis)


@operator("batch_norm_training")
def batch_norm_training(node: Node) -> tuple[ir.Value, ir.Value, ir.Value]:
    """The same by the mean and the variance that the elements have, which are results too."""
    x, scale, offset = node.tensors()
    epsilon = ir.FloatAttr(node.attribute("epsilon")).value
    axis = node.integer("feature_index")
    axes = [i for i in range(rank_of(x)) if i != axis]
    mean = emit(graph.MeanOp, x, axes=axes, keepdims=False)
    variance = emit(graph.VarianceOp, x, axes=axes, keepdims=False, correction=0)
    result = d.batch_norm(x, scale, offset, mean, variance, epsilon=epsilon, axis=axis)
    return result, mean, variance


@operator("batch_norm_grad")
def batch_norm_grad(node: Node) -> tuple[ir.Value, ir.Value, ir.Value]:
    """The gradients of `batch_norm_training` with respect to its operands."""
    x, scale, mean, variance, upstream = node.tensors()
    epsilon = ir.FloatAttr(node.attribute("epsilon")).value
    axis, rank = node.integer("feature_index"), rank_of(x)
    axes = [i for i in range(rank) if i != axis]
    elements = product([dims_of(x)[i] for i in axes])
    count = reshape(symbol(elements, element_of(x)), [])
    factor = emit(graph.RsqrtOp, add(variance, epsilon))
    centred = subtract(x, per_channel(mean, rank, axis))
    total = emit(graph.SumOp, upstream, axes=axes, keepdims=False)
    weighted = emit(graph.SumOp, multiply(upstream, centred), axes=axes, keepdims=False)
    slope = divide(multiply(weighted, multiply(factor, factor)), count)
    inner = subtract(upstream, per_channel(divide(total, count), rank, axis))
    inner = subtract(inner, multiply(centred, per_channel(slope, rank, axis)))
    gradient = multiply(inner, per_channel(multiply(scale, factor), rank, axis))
    return gradient, multiply(weighted, factor), total
