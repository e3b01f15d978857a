"""Tensors as matrices, whose rows are the axes before one, and whose columns those from it on."""

from collections.abc import Callable

from relax_mlir.bindings import ir
from relax_mlir.decompositions.emit import reshape
from relax_mlir.symbolic import product

from ..node import Node


def as_matrix(node: Node, axis: int) -> ir.Value:
    """The first input as a matrix."""
    dims = node.dims(0)
    return reshape(node.tensor(0), [product(dims[:axis]), product(dims[axis:])])


def on_matrix(node: Node, axis: int, function: Callable[[ir.Value], ir.Value]) -> ir.Value:
    """What a function makes of the first input as a matrix, in the shape of that input."""
    return reshape(function(as_matrix(node, axis)), node.dims(0))
