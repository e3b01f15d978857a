"""Gradients of operators that order elements: each goes back where it was."""

from relax_mlir.decompositions.emit import emit
from relax_mlir.dialects import graph
from relax_mlir.gradients.reverse import Adjoint, Contributions
from relax_mlir.gradients.shapes import zeros_like


def ordered(op: graph.SortOp | graph.TopkOp, adjoint: Adjoint) -> Contributions:
    """Put into zeros, by the indices that the operator returns."""
    yield (
        op.input,
        emit(
            graph.ScatterElementsOp,
            zeros_like(op.input),
            op.indices,
            adjoint.seed,
            axis=op.attributes["axis"].value,
            reduction="none",
        ),
    )
