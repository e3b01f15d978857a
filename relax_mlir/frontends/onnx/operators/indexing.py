"""Elements by indices: gather and scatter in all forms."""

import numpy as np

from relax_mlir import decompositions as d
from relax_mlir.bindings import ir
from relax_mlir.decompositions.emit import (
    add,
    astype,
    element_of,
    emit,
    less,
    reshape,
    symbol,
    where,
    with_dims,
)
from relax_mlir.dialects import graph
from relax_mlir.errors import ModelError
from relax_mlir.symbolic import Expr, const

from ...known import Known
from ...known import known as expressions
from ..node import Node
from ..registry import operator


@operator("Gather")
def gather(node: Node) -> ir.Value:
    """Slices by indices, of which negative ones count from the end."""
    axis = node.axis(0)
    return emit(graph.TakeOp, node.tensor(0), indices_of(node, node.dims(0)[axis]), axis=axis)


def indices_of(node: Node, extent: Expr) -> ir.Value:
    """The second input as indices from the front."""
    known, indices = node.known(1), node.tensor(1)
    if known is not None and not known.is_symbolic and not np.any(known.array < 0):
        return indices
    count = reshape(symbol(extent, element_of(indices)), [])
    return where(less(indices, 0), add(indices, count), indices)


@operator("GatherElements")
def gather_elements(node: Node) -> ir.Value:
    """Elements by indices along an axis."""
    axis = node.axis(0)
    indices = indices_of(node, node.dims(0)[axis])
    return emit(graph.GatherElementsOp, node.tensor(0), indices, axis=axis)


@operator("GatherND")
def gather_nd(node: Node) -> ir.Value:
    """Slices by tuples of indices."""
    batch = node.attribute("batch_dims", 0)
    indices = tuples_of(node, node.declared_rank(), batch)
    return emit(graph.GatherNdOp, node.tensor(0), indices, batch_dims=batch)


def _of_known_length(node: Node, batch: int, rank: int | None) -> ir.Value:
    """The second input, whose last dim follows from the ranks of the others, and is checked."""
    indices, dims = node.tensor(1), node.dims(1)
    if not dims or dims[-1].value is not None:
        return indices
    if rank is None:
        raise ModelError("has tuples of indices of unknown length, which is not supported")
    width = len(dims) - 1 + node.rank(0) - batch - rank
    if not 0 < width <= node.rank(0) - batch:
        raise ModelError(f"has values of rank {rank}, which no tuples of indices give")
    node.inputs[1] = with_dims(node.tensor(1), [*dims[:-1], const(width)])
    return node.tensor(1)


def tuples_of(node: Node, rank: int | None, batch: int = 0) -> ir.Value:
    """The second input as tuples of indices from the front.

    `rank` is that of the slices that they choose, if it is known.
    """
    known, indices = node.known(1), _of_known_length(node, batch, rank)
    if known is not None and not known.is_symbolic and not np.any(known.array < 0):
        return indices
    width = node.dims(1)[-1].value
    assert width is not None
    extents = node.dims(0)[batch : batch + width]
    counts = Known(np.array([], np.int64), "i64") if not extents else expressions(extents)
    own = astype(counts.emit(), element_of(indices))
    return where(less(indices, 0), add(indices, own), indices)


REDUCTIONS = ("none", "add", "mul", "max", "min")


@operator("ScatterElements", "Scatter")
def scatter_elements(node: Node) -> ir.Value:
    """Updates at indices along an axis."""
    axis = node.axis(0)
    operands = node.tensor(0), indices_of(node, node.dims(0)[axis]), node.tensor(2)
    return emit(graph.ScatterElementsOp, *operands, axis=axis, reduction=_reduction(node))


def _reduction(node: Node) -> str:
    name = node.attribute("reduction", "none")
    if name not in REDUCTIONS:
        raise ModelError(f"has reduction '{name}', which is none of {', '.join(REDUCTIONS)}")
    return name


@operator("ScatterND")
def scatter_nd(node: Node) -> ir.Value:
    """Updates at tuples of indices."""
    operands = node.tensor(0), tuples_of(node, node.rank(2)), node.tensor(2)
    return emit(graph.ScatterNdOp, *operands, reduction=_reduction(node))


@operator("TensorScatter")
def tensor_scatter(node: Node) -> ir.Value:
    """A cache with updates from a position on."""
    axis, mode = node.attribute("axis", -2), node.attribute("mode", "linear")
    circular = mode == "circular"
    operands = node.tensor(0), node.tensor(1), node.optional(2)
    return d.tensor_scatter(*operands, axis=axis, circular=circular)
