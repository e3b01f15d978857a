"""Gradients of slices, and of what is put into them."""

from typing import Any

from relax_mlir.bindings import ir
from relax_mlir.decompositions.emit import dims_of, emit
from relax_mlir.dialects import graph
from relax_mlir.gradients.reverse import Adjoint, Contributions
from relax_mlir.gradients.shapes import zeros_like


def _slice(op: ir.OpView) -> dict[str, Any]:
    """The attributes of a slice, as values to build another one."""
    ends = {name: graph.dims_of_attr(op.attributes[name].dims) for name in ("begin", "end")}
    return {name: list(op.attributes[name]) for name in ("axes", "strides")} | ends


def strided_slice(op: graph.StridedSliceOp, adjoint: Adjoint) -> Contributions:
    """Put into zeros."""
    yield op.input, emit(graph.SliceScatterOp, zeros_like(op.input), adjoint.seed, **_slice(op))


def slice_scatter(op: graph.SliceScatterOp, adjoint: Adjoint) -> Contributions:
    """The slice goes to the updates, the rest to the input."""
    if adjoint.wants(op.input):
        zeros = zeros_like(op.updates)
        yield op.input, emit(graph.SliceScatterOp, adjoint.seed, zeros, **_slice(op))
    if adjoint.wants(op.updates):
        yield op.updates, emit(graph.StridedSliceOp, adjoint.seed, **_slice(op))


def dynamic_slice(op: graph.DynamicSliceOp, adjoint: Adjoint) -> Contributions:
    """Put into zeros."""
    yield (
        op.input,
        emit(graph.DynamicUpdateSliceOp, zeros_like(op.input), adjoint.seed, op.starts),
    )


def dynamic_update_slice(op: graph.DynamicUpdateSliceOp, adjoint: Adjoint) -> Contributions:
    """The part goes to the updates, the rest to the input."""
    if adjoint.wants(op.input):
        zeros = zeros_like(op.updates)
        yield op.input, emit(graph.DynamicUpdateSliceOp, adjoint.seed, zeros, op.starts)
    if adjoint.wants(op.updates):
        sizes = dims_of(op.updates)
        yield op.updates, emit(graph.DynamicSliceOp, adjoint.seed, op.starts, sizes=sizes)
