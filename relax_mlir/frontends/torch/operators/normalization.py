"""Normalizations."""

from collections.abc import Sequence
from typing import Any

import torch

from relax_mlir import decompositions as d
from relax_mlir.bindings import ir
from relax_mlir.decompositions.emit import (
    add,
    astype,
    broadcast_to,
    dims_of,
    element_of,
    emit,
    multiply,
    reduce,
    reshape,
    scalar,
    symbol,
    widen,
)
from relax_mlir.dialects import graph
from relax_mlir.errors import ModelError
from relax_mlir.symbolic import product

from ..call import Call
from ..registry import operator


@operator("layer_norm")
def layer_norm(
    call: Call,
    x: ir.Value,
    shape: Sequence[Any],
    weight: ir.Value | None = None,
    bias: ir.Value | None = None,
    eps: float = 1e-5,
    cudnn_enable: bool = True,
) -> ir.Value:
    """By mean and variance of the last axes."""
    return d.layer_norm(x, weight, bias, epsilon=eps, axis=-len(shape))


@operator("native_layer_norm")
def native_layer_norm(
    call: Call,
    x: ir.Value,
    shape: Sequence[Any],
    weight: ir.Value | None,
    bias: ir.Value | None,
    eps: float,
) -> Sequence[ir.Value]:
    """The same, and the mean and the reciprocal of the deviation."""
    axes, widened = list(range(call.rank(x) - len(shape), call.rank(x))), widen(x)
    mean = reduce(graph.MeanOp, widened, axes, True)
    variance = emit(graph.VarianceOp, widened, axes=axes, keepdims=True, correction=0)
    y = d.layer_norm(x, weight, bias, epsilon=eps, axis=-len(shape))
    return y, mean, emit(graph.RsqrtOp, add(variance, eps))


@operator("rms_norm")
def rms_norm(
    call: Call,
    x: ir.Value,
    shape: Sequence[Any],
    weight: ir.Value | None = None,
    eps: float | None = None,
) -> ir.Value:
    """By the root of the mean of squares of the last axes, by default with the epsilon of f32."""
    is_double = isinstance(element_of(x), ir.F64Type)
    least = torch.finfo(torch.float64 if is_double else torch.float32).eps
    epsilon = least if eps is None else eps
    return d.rms_norm(x, weight, epsilon=epsilon, axis=-len(shape))


@operator("group_norm")
def group_norm(
    call: Call,
    x: ir.Value,
    groups: int,
    weight: ir.Value | None = None,
    bias: ir.Value | None = None,
    eps: float = 1e-5,
    cudnn_enabled: bool = True,
) -> ir.Value:
    """By mean and variance of groups of channels."""
    return d.group_norm(x, groups, weight, bias, epsilon=eps)


@operator("native_group_norm")
def native_group_norm(
    call: Call,
    x: ir.Value,
    weight: ir.Value | None,
    bias: ir.Value | None,
    n: Any,
    c: Any,
    hw: Any,
    groups: int,
    eps: float,
) -> Sequence[ir.Value | None]:
    """The same, and the mean and the reciprocal of the deviation of each group."""
    y = d.group_norm(x, groups, weight, bias, epsilon=eps)
    rows, channels, *rest = dims_of(x)
    parts = reshape(widen(x), [rows, groups, product([channels // groups, *rest])])
    mean, deviation = _statistics(parts, [2], eps)
    return y, *(astype(each, element_of(x)) for each in (mean, deviation))


@operator("batch_norm")
def batch_norm(
    call: Call,
    x: ir.Value,
    weight: ir.Value | None,
    bias: ir.Value | None,
    mean: ir.Value | None,
    variance: ir.Value | None,
    training: bool,
    momentum: float,
    eps: float,
    cudnn_enabled: bool = True,
) -> ir.Value:
    """By running means and variances."""
    if training or mean is None or variance is None:
        raise ModelError("is in training, which is not supported; call model.eval() first")
    return d.batch_norm(x, weight, bias, mean, variance, epsilon=eps)


@operator("_native_batch_norm_legit_no_training")
def native_batch_norm(
    call: Call,
    x: ir.Value,
    weight: ir.Value | None,
    bias: ir.Value | None,
    mean: ir.Value,
    variance: ir.Value,
    momentum: float,
    eps: float,
) -> Sequence[ir.Value | None]:
    """The same; statistics, which are for gradients, are of no elements."""
    nothing = broadcast_to(scalar(0, element_of(mean)), [0])
    return d.batch_norm(x, weight, bias, mean, variance, epsilon=eps), nothing, nothing


def _statistics(x: ir.Value, axes: Sequence[int], eps: float) -> tuple[ir.Value, ir.Value]:
    """The mean and the reciprocal of the deviation over axes."""
    variance = emit(graph.VarianceOp, x, axes=list(axes), keepdims=False, correction=0)
    return reduce(graph.MeanOp, x, axes), emit(graph.RsqrtOp, add(variance, eps))


def _trained(
    x: ir.Value, weight: ir.Value | None, bias: ir.Value | None, eps: float
) -> tuple[ir.Value, ir.Value, ir.Value, ir.Value]:
    """By means and variances of the batch: the result, the mean, 1 / deviation and the variance."""
    axes = [axis for axis in range(len(dims_of(x))) if axis != 1]
    double = widen(x)
    mean = reduce(graph.MeanOp, double, axes)
    variance = emit(graph.VarianceOp, double, axes=axes, keepdims=False, correction=0)
    deviation = emit(graph.RsqrtOp, add(variance, eps))
    return d.batch_norm(x, weight, bias, mean, variance, epsilon=eps), mean, deviation, variance


def _after(
    x: ir.Value, running: ir.Value, value: ir.Value, momentum: float, unbiased: bool
) -> ir.Value:
    """A running statistic after a batch; variances are those of a sample."""
    if unbiased:
        rows, _, *rest = dims_of(x)
        count = product([rows, *rest])
        double = [symbol(each, element_of(value)) for each in (count, count - 1)]
        value = multiply(value, reshape(d.emit.divide(*double), []))
    result = add(multiply(running, 1 - momentum), multiply(value, momentum))
    return astype(result, element_of(running))


@operator("_native_batch_norm_legit_functional")
def batch_norm_functional(
    call: Call,
    x: ir.Value,
    weight: ir.Value | None,
    bias: ir.Value | None,
    mean: ir.Value,
    variance: ir.Value,
    training: bool,
    momentum: float,
    eps: float,
) -> Sequence[ir.Value]:
    """By statistics of the batch, and what running ones become; by the running ones in evaluation.

    The mean and the reciprocal of the deviation come second and third.
    """
    if not training:
        nothing = broadcast_to(scalar(0, element_of(x)), [0])
        y = d.batch_norm(x, weight, bias, mean, variance, epsilon=eps)
        return y, nothing, nothing, mean, variance
    y, own, deviation, spread = _trained(x, weight, bias, eps)
    first = _after(x, mean, own, momentum, unbiased=False)
    return y, own, deviation, first, _after(x, variance, spread, momentum, unbiased=True)


@operator("_native_batch_norm_legit.no_stats")
def batch_norm_of_batch(
    call: Call,
    x: ir.Value,
    weight: ir.Value | None,
    bias: ir.Value | None,
    training: bool,
    momentum: float,
    eps: float,
) -> Sequence[ir.Value]:
    """By statistics of the batch, without running ones."""
    return _trained(x, weight, bias, eps)[:3]


@operator("_batch_norm_with_update_functional")
def batch_norm_with_update(
    call: Call,
    x: ir.Value,
    weight: ir.Value | None,
    bias: ir.Value | None,
    mean: ir.Value,
    variance: ir.Value,
    momentum: float,
    eps: float,
) -> Sequence[ir.Value]:
    """The same as in training; there is nothing for gradients."""
    statistics = (mean, variance, True, momentum, eps)
    y, own, deviation, *running = batch_norm_functional(call, x, weight, bias, *statistics)
    reserved = broadcast_to(scalar(0, ir.IntegerType.get_unsigned(8)), [0])
    return y, own, deviation, reserved, *running
