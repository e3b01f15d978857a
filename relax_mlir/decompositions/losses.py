"""Losses of classes: their elements are computed in f32 where the type is of half precision."""

from relax_mlir.bindings import ir
from relax_mlir.dialects import graph
from relax_mlir.dialects.graph import ShapeError

from .emit import (
    astype,
    dims_of,
    divide,
    element_of,
    emit,
    expand_dims,
    multiply,
    rank_of,
    reduce,
    reshape,
    scalar,
    symbol,
    where,
    widen,
)

REDUCTIONS = ("none", "mean", "sum")


def nll_loss(
    log_probabilities: ir.Value,
    target: ir.Value,
    weight: ir.Value | None = None,
    *,
    reduction: str = "mean",
    ignore_index: int | None = None,
) -> ir.Value:
    """The negative logarithm of the probability of each target class, times the class's weight.

    Of log probabilities [n, classes, ...] and targets [n, ...], or [classes] and a target. The mean
    is divided by the sum of weights. Targets that are `ignore_index` count for nothing. Source:
    ONNX `NegativeLogLikelihoodLoss`; ATen `nll_loss`; TVM `relax.nn.nll_loss`.
    """
    rank = rank_of(log_probabilities)
    axis = min(rank - 1, 1)
    if reduction not in REDUCTIONS:
        raise ShapeError(f"expects one of {', '.join(REDUCTIONS)}, but got '{reduction}'")
    if rank == 0 or rank_of(target) != rank - 1:
        raise ShapeError(f"has targets of rank {rank_of(target)} for classes of rank {rank}")
    valid = None
    if ignore_index is not None:
        valid = emit(graph.NotEqualOp, target, scalar(ignore_index, element_of(target)))
        target = where(valid, target, 0)
    at = expand_dims(target, [axis])
    logarithms = emit(graph.GatherElementsOp, log_probabilities, at, axis=axis)
    loss = emit(graph.NegativeOp, widen(reshape(logarithms, dims_of(target))))
    weights = None
    if weight is not None:
        weights = emit(graph.TakeOp, widen(weight), target, axis=0)
        loss = multiply(loss, weights)
    loss = loss if valid is None else where(valid, loss, 0)
    if valid is not None:
        ones = astype(valid, element_of(loss))
        weights = ones if weights is None else where(valid, weights, 0)
    return astype(_reduced(loss, weights, reduction), element_of(log_probabilities))


def _reduced(loss: ir.Value, weights: ir.Value | None, reduction: str) -> ir.Value:
    axes = range(rank_of(loss))
    if reduction == "none":
        return loss
    if reduction == "mean" and weights is None:
        return reduce(graph.MeanOp, loss, axes)
    total = reduce(graph.SumOp, loss, axes)
    if reduction == "sum" or weights is None:
        return total
    return divide(total, reduce(graph.SumOp, weights, axes))


def cross_entropy(
    logits: ir.Value,
    target: ir.Value,
    weight: ir.Value | None = None,
    *,
    reduction: str = "mean",
    ignore_index: int | None = None,
) -> ir.Value:
    """`nll_loss` of the logarithm of the softmax of [n, classes, ...].

    Source: ONNX `SoftmaxCrossEntropyLoss`; ATen `cross_entropy`.
    """
    axis = min(rank_of(logits) - 1, 1)
    logarithms = emit(graph.LogSoftmaxOp, widen(logits), axis=axis)
    loss = nll_loss(logarithms, target, weight, reduction=reduction, ignore_index=ignore_index)
    return astype(loss, element_of(logits))


def cross_entropy_with_logits(predictions: ir.Value, labels: ir.Value) -> ir.Value:
    """The negative sum of products of two tensors, divided by their first dim if they have two.

    Source: TVM `relax.nn.cross_entropy_with_logits`.
    """
    rank = rank_of(predictions)
    if rank < 1 or rank_of(labels) != rank:
        raise ShapeError(f"expects one rank of 1 or more, but got {rank} and {rank_of(labels)}")
    products = multiply(widen(predictions), widen(labels))
    total = emit(graph.NegativeOp, reduce(graph.SumOp, products, range(rank)))
    if rank > 1:
        batch = reshape(symbol(dims_of(predictions)[0], element_of(total)), [])
        total = divide(total, batch)
    return astype(total, element_of(predictions))
