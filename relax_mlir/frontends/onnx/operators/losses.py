"""Losses."""

from relax_mlir import decompositions as d
from relax_mlir.bindings import ir
from relax_mlir.decompositions.emit import emit
from relax_mlir.dialects import graph

from ..node import Node
from ..registry import Value, operator


@operator("NegativeLogLikelihoodLoss")
def nll_loss(node: Node) -> ir.Value:
    """Of logarithms of probabilities."""
    return d.nll_loss(
        node.tensor(0),
        node.tensor(1),
        node.optional(2),
        reduction=node.attribute("reduction", "mean"),
        ignore_index=node.attribute("ignore_index"),
    )


@operator("SoftmaxCrossEntropyLoss")
def cross_entropy(node: Node) -> Value | tuple[Value, ...]:
    """Of scores; also the logarithms of probabilities, if they are wanted."""
    loss = d.cross_entropy(
        node.tensor(0),
        node.tensor(1),
        node.optional(2),
        reduction=node.attribute("reduction", "mean"),
        ignore_index=node.attribute("ignore_index"),
    )
    if not node.wants(1):
        return loss
    return loss, emit(graph.LogSoftmaxOp, node.tensor(0), axis=1)
