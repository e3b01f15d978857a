"""Gradients of operators on where tensors are: they are placed by what computes them."""

from relax_mlir.dialects import graph
from relax_mlir.gradients.reverse import Adjoint, Contributions


def to_device(op: graph.ToDeviceOp | graph.HintOnDeviceOp, adjoint: Adjoint) -> Contributions:
    """All of it."""
    yield op.input, adjoint.seed
