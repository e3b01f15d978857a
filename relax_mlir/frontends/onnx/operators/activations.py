"""Activation functions."""

from collections.abc import Callable

from relax_mlir import decompositions as d
from relax_mlir.bindings import ir
from relax_mlir.decompositions.emit import emit
from relax_mlir.dialects import graph
from relax_mlir.errors import ModelError

from ..node import Node
from ..registry import operator
from .flattening import on_matrix

PLAIN: dict[str, Callable[[ir.Value], ir.Value]] = {
    "HardSwish": d.hardswish,
    "Mish": d.mish,
    "Relu": lambda x: emit(graph.ReluOp, x),
    "Softplus": d.softplus,
    "Softsign": d.softsign,
}


@operator(*PLAIN)
def plain(node: Node) -> ir.Value:
    """A function of the elements alone."""
    return PLAIN[node.op](node.tensor(0))


@operator("LeakyRelu")
def leaky_relu(node: Node) -> ir.Value:
    """Less of what is negative."""
    return d.leaky_relu(node.tensor(0), node.attribute("alpha", 0.01))


@operator("Elu")
def elu(node: Node) -> ir.Value:
    """An exponential below zero."""
    return d.elu(node.tensor(0), node.attribute("alpha", 1.0))


@operator("Celu")
def celu(node: Node) -> ir.Value:
    """An exponential below zero, differentiable."""
    return d.celu(node.tensor(0), node.attribute("alpha", 1.0))


@operator("Selu")
def selu(node: Node) -> ir.Value:
    """An exponential below zero, scaled."""
    alpha = node.attribute("alpha", 1.67326319217681884765625)
    gamma = node.attribute("gamma", 1.05070102214813232421875)
    return d.selu(node.tensor(0), alpha, gamma)


@operator("HardSigmoid")
def hardsigmoid(node: Node) -> ir.Value:
    """A line, cut at 0 and 1."""
    return d.hardsigmoid(node.tensor(0), node.attribute("alpha", 0.2), node.attribute("beta", 0.5))


@operator("ThresholdedRelu")
def thresholded_relu(node: Node) -> ir.Value:
    """What is above a threshold."""
    return d.thresholded_relu(node.tensor(0), node.attribute("alpha", 1.0))


@operator("Shrink")
def shrink(node: Node) -> ir.Value:
    """What is far from zero, nearer to it."""
    return d.shrink(node.tensor(0), node.attribute("lambd", 0.5), node.attribute("bias", 0.0))


@operator("Swish")
def swish(node: Node) -> ir.Value:
    """x * sigmoid(alpha * x)."""
    return d.swish(node.tensor(0), node.attribute("alpha", 1.0))


@operator("PRelu", since=7)
def prelu(node: Node) -> ir.Value:
    """Less of what is negative, by a tensor."""
    return d.prelu(node.tensor(0), node.tensor(1))


@operator("Gelu")
def gelu(node: Node) -> ir.Value:
    """x * P(X <= x) of a normal X."""
    kinds = {"none": graph.GeluOp, "tanh": graph.GeluTanhOp}
    kind = node.attribute("approximate", "none")
    if kind not in kinds:
        raise ModelError(f"has approximate '{kind}', which is neither none nor tanh")
    return emit(kinds[kind], node.tensor(0))


@operator("Gelu", "FastGelu", domain="com.microsoft")
def microsoft_gelu(node: Node) -> ir.Value:
    """The same, with a bias to add first."""
    x = node.tensor(0)
    if node.value(1) is not None:
        x = emit(graph.AddOp, x, node.tensor(1))
    return emit(graph.GeluOp if node.op == "Gelu" else graph.GeluTanhOp, x)


@operator("Softmax", "LogSoftmax", since=13)
def softmax(node: Node) -> ir.Value:
    """Along one axis."""
    op = graph.SoftmaxOp if node.op == "Softmax" else graph.LogSoftmaxOp
    return emit(op, node.tensor(0), axis=node.axis(-1))


@operator("Hardmax", since=13)
def hardmax(node: Node) -> ir.Value:
    """1 at the first greatest element along an axis."""
    return d.hardmax(node.tensor(0), node.axis(-1))


@operator("Softmax", "LogSoftmax", "Hardmax", until=12)
def flat_softmax(node: Node) -> ir.Value:
    """Over all axes from one on."""

    def rows(x: ir.Value) -> ir.Value:
        if node.op == "Hardmax":
            return d.hardmax(x, 1)
        return emit(graph.SoftmaxOp if node.op == "Softmax" else graph.LogSoftmaxOp, x, axis=1)

    return on_matrix(node, node.axis(1), rows)
