"""Normalizations."""

from relax_mlir import decompositions as d
from relax_mlir.bindings import ir
from relax_mlir.decompositions.emit import (
    add,
    astype,
    element_of,
    emit,
    multiply,
    reduce,
    widen,
)
from relax_mlir.dialects import graph
from relax_mlir.errors import ModelError

from ..node import Node, normalized
from ..registry import Value, operator


@operator("BatchNormalization", since=7)
def batch_norm(node: Node) -> Value | tuple[Value, ...]:
    """By running means and variances; in training by those of the batch, and new running ones."""
    epsilon = node.attribute("epsilon", 1e-5)
    x, scale, bias, mean, variance = (node.tensor(i) for i in range(5))
    if not node.flag("training_mode"):
        if node.num_outputs > 1:
            raise ModelError("has statistics as outputs, outside of training")
        return d.batch_norm(x, scale, bias, mean, variance, epsilon=epsilon)
    momentum = node.attribute("momentum", 0.9)
    axes = [i for i in range(node.rank()) if i != 1]
    widened = widen(x)
    own_mean = reduce(graph.MeanOp, widened, axes)
    own_variance = emit(graph.VarianceOp, widened, axes=axes, keepdims=False, correction=0)
    running = []
    for old, new in ((mean, own_mean), (variance, own_variance)):
        mixed = add(multiply(old, momentum), multiply(astype(new, element_of(old)), 1 - momentum))
        running.append(mixed)
    own = [astype(each, element_of(mean)) for each in (own_mean, own_variance)]
    return (d.batch_norm(x, scale, bias, *own, epsilon=epsilon), *running)


@operator("InstanceNormalization")
def instance_norm(node: Node) -> ir.Value:
    """By the mean and variance of each channel of each image."""
    epsilon = node.attribute("epsilon", 1e-5)
    return d.instance_norm(node.tensor(0), node.tensor(1), node.tensor(2), epsilon=epsilon)


@operator("GroupNormalization", since=21)
def group_norm(node: Node) -> ir.Value:
    """By the mean and variance of groups of channels."""
    groups, epsilon = node.required("num_groups"), node.attribute("epsilon", 1e-5)
    return d.group_norm(node.tensor(0), groups, node.tensor(1), node.tensor(2), epsilon=epsilon)


@operator("GroupNormalization", until=20)
def old_group_norm(node: Node) -> ir.Value:
    """The same, with a scale and a bias of each group."""
    groups, epsilon = node.required("num_groups"), node.attribute("epsilon", 1e-5)
    channels = node.dims(0)[1]
    scale, bias = (
        emit(graph.RepeatOp, node.tensor(i), repeats=[channels // groups], axis=0) for i in (1, 2)
    )
    return d.group_norm(node.tensor(0), groups, scale, bias, epsilon=epsilon)


@operator("LayerNormalization")
def layer_norm(node: Node) -> Value | tuple[Value, ...]:
    """By the mean and variance of the axes from one on; also these, if they are wanted."""
    axis, epsilon = node.axis(-1), node.attribute("epsilon", 1e-5)
    x = node.tensor(0)
    y = d.layer_norm(x, node.tensor(1), node.optional(2), epsilon=epsilon, axis=axis)
    if node.num_outputs == 1:
        return y
    axes, widened = list(range(axis, node.rank())), widen(x)
    mean = reduce(graph.MeanOp, widened, axes, True)
    variance = emit(graph.VarianceOp, widened, axes=axes, keepdims=True, correction=0)
    return y, mean, emit(graph.RsqrtOp, add(variance, epsilon))


@operator("SimplifiedLayerNormalization")
def simplified_layer_norm(node: Node) -> ir.Value:
    """By the root of the mean of squares."""
    return _rms(node, node.tensor(0))


@operator("RMSNormalization")
def rms_norm(node: Node) -> ir.Value:
    """By the root of the mean of squares of the axes from one on."""
    return _rms(node, node.tensor(0))


def _rms(node: Node, x: ir.Value) -> ir.Value:
    epsilon, axis = node.attribute("epsilon", 1e-5), node.axis(-1)
    return d.rms_norm(x, node.tensor(1), epsilon=epsilon, axis=axis)


@operator("SkipLayerNormalization", "SkipSimplifiedLayerNormalization", domain="com.microsoft")
def skip_layer_norm(node: Node) -> tuple[Value, ...]:
    """A sum, and its normalization."""
    total = add(node.tensor(0), node.tensor(1))
    epsilon = node.attribute("epsilon", 1e-12)
    if node.op == "SkipLayerNormalization":
        if node.value(4) is not None:
            total = add(total, node.tensor(4))
        y = d.layer_norm(total, node.tensor(2), node.optional(3), epsilon=epsilon)
    else:
        if node.value(3) is not None:
            total = add(total, node.tensor(3))
        y = d.rms_norm(total, node.tensor(2), epsilon=epsilon)
    return y, None, None, total


@operator("LRN")
def local_response_norm(node: Node) -> ir.Value:
    """By the squares of neighbouring channels."""
    return d.local_response_norm(
        node.tensor(0),
        node.required("size"),
        alpha=node.attribute("alpha", 1e-4),
        beta=node.attribute("beta", 0.75),
        bias=node.attribute("bias", 1.0),
    )


@operator("LpNormalization")
def lp_norm(node: Node) -> ir.Value:
    """By the norm along an axis."""
    return d.lp_norm(node.tensor(0), p=node.attribute("p", 2), axis=node.axis(-1))


@operator("MeanVarianceNormalization")
def mean_variance_norm(node: Node) -> ir.Value:
    """By mean and deviation."""
    axes = [normalized(axis, node.rank()) for axis in node.attribute("axes", [0, 2, 3])]
    return d.mean_variance_norm(node.tensor(0), axes, epsilon=1e-9)
