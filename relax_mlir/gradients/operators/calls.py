"""Gradients of calls: by a function that users give, else by one that computes the callee again.

    func.func private @f(%x: !x) -> !x attributes {graph.gradient = @g, graph.noinline}
    func.func private @g(%x: !x, %y: !x, %gy: !x) -> !x attributes {graph.noinline}

`@g` takes the arguments of `@f`, its results, and the gradients of those that are floats; it
returns the gradient of each argument that is of floats.
"""

from relax_mlir.dialects import graph
from relax_mlir.dialects.graph import annotation_of
from relax_mlir.gradients.reverse import Adjoint, Contributions, is_differentiable
from relax_mlir.gradients.shapes import zeros_like
from relax_mlir.passes import PassFailure


def call(op: graph.CallOp, adjoint: Adjoint) -> Contributions:
    """Calls the function that has the gradients of the callee."""
    given = adjoint.context.given(op, op.callee_name)
    if given is not None:
        yield from _given(op, given, adjoint)
        return
    wrt = [i for i, operand in enumerate(op.ins) if adjoint.wants(operand)]
    seeded = [i for i, seed in enumerate(adjoint.seeds) if seed is not None]
    seeds = [seed for seed in adjoint.seeds if seed is not None]
    name = adjoint.context.callees(op.callee_name, wrt, seeded)
    types = [annotation_of(op.ins[i]) for i in wrt]
    gradients = graph.CallOp.build(name, [*op.ins, *seeds], types).outs
    for i, gradient in zip(wrt, gradients, strict=True):
        yield op.ins[i], gradient


def call_tir(op: graph.CallTirOp, adjoint: Adjoint) -> Contributions:
    """Calls the function that is given for the tensor program."""
    given = adjoint.context.given(op, op.callee_name)
    if given is None:
        raise PassFailure(
            op,
            f"has no gradient; name a function that has those of '@{op.callee_name}' in its "
            "attribute 'graph.gradient'",
        )
    yield from _given(op, given, adjoint)


def _given(op: graph.CallOp | graph.CallTirOp, name: str, adjoint: Adjoint) -> Contributions:
    seeds = [
        zeros_like(out) if seed is None else seed
        for out, seed in zip(op.outs, adjoint.seeds, strict=True)
        if is_differentiable(out)
    ]
    floats = [operand for operand in op.ins if is_differentiable(operand)]
    types = [annotation_of(operand) for operand in floats]
    gradients = graph.CallOp.build(name, [*op.ins, *op.outs, *seeds], types).outs
    yield from zip(floats, gradients, strict=True)
