"""Gradients of operators that make tensors from elements, or drop a triangle of one."""

from relax_mlir.decompositions.emit import element_of, emit, multiply, scalar, subtract
from relax_mlir.dialects import graph
from relax_mlir.gradients.reverse import Adjoint, Contributions


def full(op: graph.FullOp, adjoint: Adjoint) -> Contributions:
    """The sum over all elements."""
    yield op.fill_value, adjoint.seed


def one_hot(op: graph.OneHotOp, adjoint: Adjoint) -> Contributions:
    """The sum over the positions of each of the two values."""
    element = element_of(op.on)
    hot = emit(
        graph.OneHotOp,
        op.indices,
        scalar(1, element),
        scalar(0, element),
        depth=graph.dims_of_attr(op.attributes["depth"].dims),
        axis=op.attributes["axis"].value,
    )
    yield op.on, multiply(adjoint.seed, hot)
    if adjoint.wants(op.off):
        yield op.off, multiply(adjoint.seed, subtract(1, hot))


def triangle(op: graph.TrilOp | graph.TriuOp, adjoint: Adjoint) -> Contributions:
    """The same triangle."""
    yield op.input, emit(type(op), adjoint.seed, k=op.attributes["k"].value)
