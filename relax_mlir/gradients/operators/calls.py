"""Gradients of calls: the callee is computed again by a function that goes on in reverse."""

from relax_mlir.dialects import graph
from relax_mlir.dialects.graph import annotation_of
from relax_mlir.gradients.reverse import Adjoint, Contributions


def call(op: graph.CallOp, adjoint: Adjoint) -> Contributions:
    """Calls the function that has the gradients of the callee."""
    wrt = [i for i, operand in enumerate(op.ins) if adjoint.wants(operand)]
    seeded = [i for i, seed in enumerate(adjoint.seeds) if seed is not None]
    seeds = [seed for seed in adjoint.seeds if seed is not None]
    name = adjoint.context.callees(op.callee_name, wrt, seeded)
    types = [annotation_of(op.ins[i]) for i in wrt]
    gradients = graph.CallOp.build(name, [*op.ins, *seeds], types).outs
    for i, gradient in zip(wrt, gradients, strict=True):
        yield op.ins[i], gradient
